package program

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A Console is where progress and log lines go, one at a time: a line takes the
// place of the progress bar, or of the text that Show keeps at the bottom, which is
// drawn again below it.
type Console struct {
	terminal bool
	fd       int // of the terminal, where it has one
	// say has a text in the words of the program's flags; nil leaves it. Frame sets it,
	// before anything is written.
	say func(text string) string

	mu    sync.Mutex // guards all below
	w     io.Writer
	bar   *progressbar.ProgressBar // nil while none is shown
	shown string                   // what Show keeps at the bottom, whole lines
}

// NewConsole returns the console that w is: a terminal, if it is a file of that kind.
func NewConsole(w io.Writer) *Console {
	c := &Console{w: w, fd: -1}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		c.terminal, c.fd = true, int(f.Fd())
	}
	return c
}

// NewTerminal returns a console that takes w for a terminal, whatever it is. It is
// for tests.
func NewTerminal(w io.Writer) *Console { return &Console{w: w, terminal: true, fd: -1} }

// Terminal reports whether the console is a terminal, on which text can be replaced.
func (c *Console) Terminal() bool { return c.terminal }

// Size returns how many columns and rows the terminal has, 80 and 24 where nobody
// knows.
func (c *Console) Size() (columns, rows int) {
	if c.fd >= 0 {
		if columns, rows, err := term.GetSize(c.fd); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return 80, 24
}

// Close has nothing written any more. The log that goes to the console outlives a run:
// Beam's goroutines go on for a moment, and whoever was given the writer may be reading
// what was written.
func (c *Console) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.w = io.Discard
}

// Write writes whole lines.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		_ = c.bar.Clear() // a bar that cannot be drawn is no reason to stop
	}
	if c.shown == "" {
		return c.w.Write(p)
	}
	c.eraseLocked()
	n, err := c.w.Write(p)
	_, _ = io.WriteString(c.w, c.shown)
	return n, err
}

// Show keeps text, whole lines none of which is wider than the terminal, at its
// bottom, in the place of what was kept there. Empty takes that away. Only a terminal
// can.
func (c *Console) Show(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text == c.shown {
		return
	}
	c.eraseLocked()
	c.shown = text
	_, _ = io.WriteString(c.w, text)
}

// eraseLocked takes away what is shown: up to its first line, and all from there.
func (c *Console) eraseLocked() {
	if c.shown != "" {
		fmt.Fprintf(c.w, "\x1b[%dA\x1b[J", strings.Count(c.shown, "\n"))
	}
}

// setBar shows bar from now on, or with nil takes the one away.
func (c *Console) setBar(bar *progressbar.ProgressBar) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bar == nil && c.bar != nil {
		_ = c.bar.Exit()
		_ = c.bar.Clear()
	}
	c.bar = bar
}

func (c *Console) draw(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.bar.Set64(n)
}
