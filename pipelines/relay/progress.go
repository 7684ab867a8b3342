package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

const (
	// redrawEvery is how often a progress bar moves.
	redrawEvery = 200 * time.Millisecond
	// lineEvery is how often a line tells the progress where there is no terminal.
	lineEvery = 10 * time.Second
)

// A console is where progress and log lines go, one at a time: a line takes the
// place of the progress bar, which is drawn again below it.
type console struct {
	terminal bool

	mu  sync.Mutex // guards all below
	w   io.Writer
	bar *progressbar.ProgressBar // nil while none is shown
}

func newConsole(w io.Writer) *console {
	f, ok := w.(*os.File)
	return &console{w: w, terminal: ok && term.IsTerminal(int(f.Fd()))}
}

// Write writes whole lines.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		_ = c.bar.Clear() // a bar that cannot be drawn is no reason to stop
	}
	return c.w.Write(p)
}

// setBar shows bar from now on, or with nil takes the one away.
func (c *console) setBar(bar *progressbar.ProgressBar) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bar == nil && c.bar != nil {
		_ = c.bar.Exit()
		_ = c.bar.Clear()
	}
	c.bar = bar
}

func (c *console) draw(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.bar.Set64(n)
}

// A progress shows how far a relay is until it is stopped.
type progress struct {
	done, ended chan struct{}
}

// showProgress starts to tell what counts says: as a bar on a terminal, which
// fills up to total where that is known, and as a line now and then elsewhere.
func showProgress(c *console, total int64, counts func() pubsubio.Counts) *progress {
	p := &progress{done: make(chan struct{}), ended: make(chan struct{})}
	every, show := lineEvery, lines(c, counts)
	if c.terminal {
		every, show = redrawEvery, bar(c, total, counts)
	}
	go func() { // stop ends it and waits for it.
		defer close(p.ended)
		defer c.setBar(nil)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show()
			case <-p.done:
				return
			}
		}
	}()
	return p
}

// stop ends the progress and takes the bar away.
func (p *progress) stop() {
	close(p.done)
	<-p.ended
}

func bar(c *console, total int64, counts func() pubsubio.Counts) (show func()) {
	if total <= 0 {
		total = -1 // A spinner: nobody knows the end.
	}
	c.setBar(progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(c.w),
		progressbar.OptionSetDescription("relaying"),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("messages"),
		progressbar.OptionSetWidth(30),
		// Else the library draws by itself, beside the lock of the console.
		progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionSetRenderBlankState(true),
	))
	return func() { c.draw(counts().Published) }
}

func lines(c *console, counts func() pubsubio.Counts) (show func()) {
	var before int64
	return func() {
		n := counts()
		rate := float64(n.Published-before) / lineEvery.Seconds()
		before = n.Published
		fmt.Fprintf(c, "read %s, published %s (%s/s), acknowledged %s\n",
			grouped(n.Read), grouped(n.Published), grouped(int64(rate)), grouped(n.Acknowledged))
	}
}
