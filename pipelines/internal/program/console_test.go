package program

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// advance moves the bubble's clock by d and waits until all is quiet.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual: the bubble's clock, not the machine's
	synctest.Wait()
}

// A screen is what a test looks at while others write to it.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// take returns what was written since it was called last.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.b.Reset()
	return s.b.String()
}

func TestConsole_ALineGoesAboveWhatIsShown(t *testing.T) {
	var out screen
	c := NewTerminal(&out)
	c.Show("one\ntwo\n")
	if got := out.take(); got != "one\ntwo\n" {
		t.Errorf("shows %q", got)
	}
	c.Show("one\ntwo\n")
	if got := out.take(); got != "" {
		t.Errorf("draws the same again: %q", got)
	}
	if n, err := fmt.Fprint(c, "level=WARN\n"); n != 11 || err != nil {
		t.Error(n, err)
	}
	// \x1b[2A is two lines up, \x1b[J clears from there on.
	if got := out.take(); got != "\x1b[2A\x1b[Jlevel=WARN\none\ntwo\n" {
		t.Errorf("a line beside what is shown: %q", got)
	}
	c.Show("three\n")
	if got := out.take(); got != "\x1b[2A\x1b[Jthree\n" {
		t.Errorf("another text: %q", got)
	}
	c.Show("")
	if got := out.take(); got != "\x1b[1A\x1b[J" {
		t.Errorf("nothing any more: %q", got)
	}
}

// What a job logs after its end met the test that was reading what was said.
func TestConsole_IsSilentOnceItIsClosed(t *testing.T) {
	var out bytes.Buffer // without a lock: the race detector looks at it
	c := NewConsole(&out)
	LogTo(c, false)
	logged := make(chan struct{})
	go func() { // The test waits for it.
		defer close(logged)
		for range 100 {
			slog.Warn("late")
		}
	}()
	c.Close()
	before := out.Len()
	<-logged
	if out.Len() != before {
		t.Errorf("was %d bytes long, is %d", before, out.Len())
	}
}

func TestConsole_ThatIsNoTerminal(t *testing.T) {
	c := NewConsole(new(bytes.Buffer))
	if columns, rows := c.Size(); c.Terminal() || columns != 80 || rows != 24 {
		t.Errorf("terminal %v, %d by %d", c.Terminal(), columns, rows)
	}
}

func TestRedraw_ShowsUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		n := 0
		stop := Redraw(NewTerminal(&out), func() string { n++; return fmt.Sprintln(n) })
		advance(2*RedrawEvery + RedrawEvery/2)
		if got := out.take(); got != "1\n\x1b[1A\x1b[J2\n" {
			t.Errorf("drew %q", got)
		}
		stop()
		if got := out.take(); got != "\x1b[1A\x1b[J" {
			t.Errorf("at its end %q", got)
		}
		advance(time.Minute)
		if got := out.take(); got != "" {
			t.Errorf("drew %q after its end", got)
		}
	})
}

// What has happened since the last line is told at the end.
func TestLines_TellsNewsAndTheLastAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, news screen
		stop := Lines(NewConsole(&out), news.take)
		advance(TellEvery + TellEvery/2)
		fmt.Fprintln(&news, "one")
		advance(TellEvery)
		if got := out.take(); got != "one\n" {
			t.Errorf("told %q", got)
		}
		fmt.Fprintln(&news, "two")
		stop()
		if got := out.take(); got != "two\n" {
			t.Errorf("told %q at its end", got)
		}
	})
}

func TestAnnounceStop_TellsOnceTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out screen
	released := 0
	unwatch := announceStop(ctx, func() { released++ }, &out, func() string { return "all is returned" })
	if got := out.take(); got != "" {
		t.Errorf("told %q before", got)
	}
	cancel()
	unwatch() // returns once the announcement is written
	if got := out.take(); got != "stopping: all is returned; interrupt again to kill\n" || released != 1 {
		t.Errorf("told %q, released %d times", got, released)
	}
}

func TestUntilInterrupted_SaysNothingWithoutAnInterrupt(t *testing.T) {
	var out screen
	ctx, done := UntilInterrupted(t.Context(), &out, func() string { return "" })
	done()
	if got := out.take(); got != "" || ctx.Err() == nil {
		t.Errorf("told %q, %v", got, ctx.Err())
	}
}
