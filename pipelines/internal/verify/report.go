package verify

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

// A report is what became of a stream, as --report writes it.
type report struct {
	// Expected is how many messages had to arrive, null where that is not known.
	Expected *int64 `json:"expected"`
	// Arrived is how many did, each counted once.
	Arrived int64 `json:"arrived"`
	// Lost is how many did not, FirstLost the first few of them that are known by
	// name.
	Lost      int64    `json:"lost"`
	FirstLost []string `json:"first_lost,omitempty"`
	// Missing is what had not arrived when verify was interrupted, instead of Lost.
	Missing int64 `json:"missing,omitempty"`

	Duplicated int64 `json:"duplicated"`
	Reordered  int64 `json:"reordered"`
	Poison     int64 `json:"poison"`
	Foreign    int64 `json:"foreign"`

	Latency           latencyReport `json:"latency_ms"`
	Seconds           float64       `json:"seconds"`
	MessagesPerSecond float64       `json:"messages_per_second"`
}

// A latencyReport is in milliseconds.
type latencyReport struct {
	P50       float64     `json:"p50"`
	P90       float64     `json:"p90"`
	P99       float64     `json:"p99"`
	Max       float64     `json:"max"`
	Histogram []barReport `json:"histogram"`
}

type barReport struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Count int64   `json:"count"`
}

// result is what t knows after a read of that length. What an interrupted read has not
// seen is missing, and not lost.
func (t *tally) result(elapsed time.Duration, interrupted bool) report {
	names := t.lostNames()
	t.mu.Lock()
	defer t.mu.Unlock()
	r := report{
		Arrived:    t.arrived,
		Duplicated: t.duplicated,
		Reordered:  t.reordered,
		Poison:     t.poison,
		Foreign:    t.foreign,
		Seconds:    elapsed.Seconds(),
		Latency: latencyReport{
			P50: millis(t.latency.percentile(50)),
			P90: millis(t.latency.percentile(90)),
			P99: millis(t.latency.percentile(99)),
			Max: millis(t.latency.most),
		},
	}
	for _, b := range t.latency.bars() {
		r.Latency.Histogram = append(r.Latency.Histogram, barReport{millis(b.From), millis(b.To), b.Count})
	}
	switch {
	case t.report != nil:
		r.Expected = &t.report.Published
	case t.count > 0:
		r.Expected = &t.count
	}
	if interrupted {
		r.Missing = t.lostLocked()
	} else {
		r.Lost, r.FirstLost = t.lostLocked(), names
		if r.Lost == 0 {
			r.FirstLost = nil
		}
	}
	if elapsed > 0 {
		r.MessagesPerSecond = float64(t.arrived+t.duplicated+t.foreign) / elapsed.Seconds()
	}
	return r
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// verdict says what is wrong; nil where nothing is.
func (r report) verdict(ordering bool) error {
	var faults []error
	if r.Lost > 0 {
		first := ""
		if len(r.FirstLost) > 0 {
			first = ", the first of them " + strings.Join(r.FirstLost, ", ")
		}
		faults = append(faults, fmt.Errorf("%s lost%s", messages(r.Lost, "message is", "messages are"), first))
	}
	if ordering && r.Reordered > 0 {
		faults = append(faults, fmt.Errorf("%s arrived after a later one of the same key", messages(r.Reordered, "message has", "messages have")))
	}
	return errors.Join(faults...)
}

func messages(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return program.Grouped(n) + " " + more
}

// print writes r for people.
func (r report) print(w io.Writer, l *latencies) {
	t := program.NewTable(w)
	if r.Expected != nil {
		t.Count("expected", *r.Expected)
	}
	t.Count("arrived", r.Arrived)
	if r.Missing > 0 {
		t.Count("not arrived yet", r.Missing)
	} else {
		t.Count("lost", r.Lost)
	}
	t.Count("duplicated", r.Duplicated)
	t.Count("reordered", r.Reordered)
	t.Count("poison", r.Poison)
	t.Count("foreign", r.Foreign)
	t.Seconds("seconds", r.Seconds)
	t.Count("messages/second", int64(r.MessagesPerSecond))
	t.Flush()
	if l.count > 0 {
		fmt.Fprintln(w)
		printLatency(w, l)
	}
}
