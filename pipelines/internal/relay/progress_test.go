package relay

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// advance moves the bubble's clock by d and waits until all is quiet.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual: the bubble's clock, not the machine's
	synctest.Wait()
}

// counts are those of a relay that a test makes up.
type counts struct {
	mu sync.Mutex
	c  figures // guarded by mu
}

func (c *counts) get() figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.c
}

func (c *counts) set(to figures) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.c = to
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

func TestProgress_TellsALineEveryTenSecondsWithoutATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		var c counts
		stop := showProgress(program.NewConsole(&out), 0, c.get)
		advance(program.LineEvery - time.Second)
		if got := out.take(); got != "" {
			t.Errorf("told %q within ten seconds", got)
		}
		c.set(figures{Counts: pubsubio.Counts{Read: 12_500, Published: 12_000, Acknowledged: 10_000}})
		advance(2 * time.Second)
		c.set(figures{Counts: pubsubio.Counts{Read: 17_500, Published: 17_000, Acknowledged: 10_000}})
		advance(program.LineEvery)
		c.set(figures{Counts: pubsubio.Counts{Read: 19_500, Published: 18_000, Acknowledged: 10_000}, Filtered: 1000})
		advance(program.LineEvery)
		c.set(figures{Counts: pubsubio.Counts{Read: 19_520, Published: 18_000, Failed: 20, Acknowledged: 10_000}, Filtered: 1000})
		advance(program.LineEvery)
		stop()
		want := "read 12,500, published 12,000 (1,200/s), acknowledged 10,000\n" +
			"read 17,500, published 17,000 (500/s), acknowledged 10,000\n" +
			"read 19,500, filtered 1,000 and published 18,000 (200/s), acknowledged 10,000\n" +
			"read 19,520, failed 20, filtered 1,000 and published 18,000 (2/s), acknowledged 10,000\n"
		if got := out.take(); got != want {
			t.Errorf("told:\n%swant:\n%s", got, want)
		}
	})
}

func TestProgress_DrawsABarOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		var c counts
		terminal := program.NewTerminal(&out)
		stop := showProgress(terminal, 400, c.get)
		c.set(figures{Counts: pubsubio.Counts{Published: 70}, Filtered: 30})
		advance(time.Second)
		if got := out.take(); !strings.Contains(got, "25%") || !strings.Contains(got, "(100/400, ") || !strings.Contains(got, "messages/s") {
			t.Errorf("drew %q", got)
		}
		if _, err := io.WriteString(terminal, "level=WARN\n"); err != nil {
			t.Fatal(err)
		}
		// \x1b[2K clears the line of the bar, \r is its beginning.
		if got := out.take(); !strings.HasSuffix(got, "level=WARN\n") || !strings.HasPrefix(got, "\x1b[2K\r") {
			t.Errorf("a line beside the bar: %q", got)
		}
		advance(time.Second)
		stop()
		out.take()
		advance(time.Minute)
		if got := out.take(); got != "" {
			t.Errorf("drew %q after its end", got)
		}
	})
}

func TestProgress_CountsWhereNobodyKnowsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		stop := showProgress(program.NewTerminal(&out), 0, func() figures { return figures{Counts: pubsubio.Counts{Published: 7}} })
		advance(time.Second)
		stop() // The bubble ends only if the library's goroutine, too, is gone.
		if got := out.take(); !strings.Contains(got, "(7/-, ") || strings.Contains(got, "%") {
			t.Errorf("drew %q", got)
		}
	})
}

func TestReport_Table(t *testing.T) {
	var out bytes.Buffer
	printTable(&out, newReport(figures{pubsubio.Counts{Read: 1_234_567, Published: 1_234_500, Acknowledged: 999}, 67}, 2*time.Second), nil)
	want := `             read  1,234,567
         filtered         67
        published  1,234,500
          skipped          0
           failed          0
     acknowledged        999
         returned          0
      redelivered          0
          seconds      2.000
  messages/second    617,250
`
	if out.String() != want {
		t.Errorf("table:\n%swant:\n%s", out.String(), want)
	}
}
