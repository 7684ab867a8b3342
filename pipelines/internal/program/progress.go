package program

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

const (
	// RedrawEvery is how often a terminal is drawn anew.
	RedrawEvery = 200 * time.Millisecond
	// LineEvery is how often a line tells the progress where there is no terminal.
	LineEvery = 10 * time.Second
)

// A Progress says how far a program is.
type Progress struct {
	// What is what it is at, as "relaying", and Unit what is counted, as "messages".
	What, Unit string
	// Total is where the count ends; nobody knows if it is not positive.
	Total int64
	// Done is the count. It is called now and then, by one goroutine.
	Done func() int64
	// Line tells the progress in a line, where there is no terminal. It is given how
	// much the count has grown in a second since the last line.
	Line func(perSecond int64) string
}

// ShowProgress starts to tell p on c, until stop is called: as a bar on a terminal,
// which fills up to the total where that is known, and as a line now and then
// elsewhere. stop takes the bar away.
func ShowProgress(c *Console, p Progress) (stop func()) {
	if c.terminal {
		return every(RedrawEvery, bar(c, p), func() { c.setBar(nil) })
	}
	return every(LineEvery, lines(c, p), func() {})
}

// Redraw calls draw, which returns what a terminal is to show at its bottom, now and
// then until stop is called. stop takes that away.
func Redraw(c *Console, draw func() string) (stop func()) {
	return every(RedrawEvery, func() { c.Show(draw()) }, func() { c.Show("") })
}

// every calls show at that interval until stop is called, and end then.
func every(interval time.Duration, show, end func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { // stop ends it and waits for it.
		defer close(ended)
		defer end()
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show()
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

func bar(c *Console, p Progress) (show func()) {
	total := p.Total
	if total <= 0 {
		total = -1 // A spinner: nobody knows the end.
	}
	c.setBar(progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(c.w),
		progressbar.OptionSetDescription(p.What),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(p.Unit),
		progressbar.OptionSetWidth(30),
		// Else the library draws by itself, beside the lock of the console.
		progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionSetRenderBlankState(true),
	))
	return func() { c.draw(p.Done()) }
}

func lines(c *Console, p Progress) (show func()) {
	var before int64
	return func() {
		n := p.Done()
		rate := float64(n-before) / LineEvery.Seconds()
		before = n
		_, _ = io.WriteString(c, p.Line(int64(rate))+"\n")
	}
}

// TellEvery is how often Lines asks for news.
const TellEvery = time.Second

// Lines writes to c, now and then until stop is called, and once more then, what news
// returns: whole lines, or nothing.
func Lines(c *Console, news func() string) (stop func()) {
	tell := func() {
		if text := news(); text != "" {
			_, _ = io.WriteString(c, text)
		}
	}
	return every(TellEvery, tell, tell)
}
