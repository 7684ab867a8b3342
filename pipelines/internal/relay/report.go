package relay

import (
	"fmt"
	"io"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

// A report is what a relay has done, as --report writes it.
type report struct {
	Read              int64   `json:"read"`
	Filtered          int64   `json:"filtered"`
	Published         int64   `json:"published"`
	Skipped           int64   `json:"skipped"`
	Failed            int64   `json:"failed"`
	Acknowledged      int64   `json:"acknowledged"`
	Returned          int64   `json:"returned"`
	Redelivered       int64   `json:"redelivered"`
	Seconds           float64 `json:"seconds"`
	MessagesPerSecond float64 `json:"messages_per_second"`
}

func newReport(c figures, elapsed time.Duration) report {
	r := report{
		Read:         c.Read,
		Filtered:     c.Filtered,
		Published:    c.Published,
		Skipped:      c.Skipped,
		Failed:       c.Failed,
		Acknowledged: c.Acknowledged,
		Returned:     c.Returned,
		Redelivered:  c.Redelivered,
		Seconds:      elapsed.Seconds(),
	}
	if elapsed > 0 {
		r.MessagesPerSecond = float64(c.Published) / elapsed.Seconds()
	}
	return r
}

// unacknowledged is the error of a relay that has published messages, or kept them
// back, or disposed of them as --failure_policy says, and not acknowledged them: nil where
// there are none. It is for a relay that has no other error, which would be the reason.
func (r report) unacknowledged() error {
	n := r.Published + r.Filtered + r.Failed - r.Acknowledged
	switch {
	case n <= 0:
		return nil
	case r.Filtered+r.Failed > 0:
		return fmt.Errorf("%s of %s published, %s filtered and %s failed messages were not acknowledged: they will come again, and what was published be published twice",
			program.Grouped(n), program.Grouped(r.Published), program.Grouped(r.Filtered), program.Grouped(r.Failed))
	}
	return fmt.Errorf("%s of %s published messages were not acknowledged: they will come again and be published twice", program.Grouped(n), program.Grouped(r.Published))
}

// printTable writes r, and what the embedded server says of it if it was asked.
func printTable(w io.Writer, r report, check *verdict) {
	t := program.NewTable(w)
	if check != nil {
		t.Count("sent", check.sent)
	}
	t.Count("read", r.Read)
	t.Count("filtered", r.Filtered)
	t.Count("published", r.Published)
	t.Count("skipped", r.Skipped)
	t.Count("failed", r.Failed)
	t.Count("acknowledged", r.Acknowledged)
	t.Count("returned", r.Returned)
	t.Count("redelivered", r.Redelivered)
	if check != nil {
		t.Count("arrived", check.arrived)
		t.Count("arrived again", check.again)
	}
	t.Seconds("seconds", r.Seconds)
	t.Count("messages/second", int64(r.MessagesPerSecond))
	t.Flush()
}
