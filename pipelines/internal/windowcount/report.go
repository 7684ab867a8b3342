package windowcount

import (
	"fmt"
	"io"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// maxRows is how many windows the table at the end shows, and maxReported how many
// the report holds: the latest of them.
const (
	maxRows     = 60
	maxReported = 10_000
)

// A report is what was counted, as --report writes it.
type report struct {
	// Read is how many messages came, Acknowledged how many of them are done with, and
	// Published how many counts were published.
	Read         int64 `json:"read"`
	Acknowledged int64 `json:"acknowledged"`
	Published    int64 `json:"published"`
	// BadTimestamps is how many came without a usable --timestamp_attribute: what
	// --bad_timestamp=drop has dropped, or publish_time has counted by that.
	BadTimestamps int64 `json:"bad_timestamps"`
	// Late is how many were too late to be counted, once for each window they lie in.
	// It is null where it is not known: where the program has failed, and where windows
	// that accumulate have counted again after the board had let go of them.
	Late    *int64  `json:"late"`
	Seconds float64 `json:"seconds"`
	// WindowCount is how many windows have counted; Windows are the latest of them.
	WindowCount int64          `json:"window_count"`
	Windows     []windowReport `json:"windows"`
}

type windowReport struct {
	Start  instant          `json:"start"`
	End    instant          `json:"end"`
	Counts map[string]int64 `json:"counts"`
}

func newReport(b *board, c pubsubio.Counts, elapsed time.Duration, failed bool) report {
	r := report{Read: c.Read + c.DecodeFailures, Acknowledged: c.Acknowledged, Published: c.Published, BadTimestamps: c.DecodeFailures, Seconds: elapsed.Seconds()}
	if late, known := b.late(); known && !failed {
		r.Late = &late
	}
	r.Windows, r.WindowCount = b.last(maxReported)
	return r
}

// print writes what was counted, for people.
func (r report) print(w io.Writer, s settings, v view, columns int) {
	if len(v.rows) > 0 {
		fmt.Fprintf(w, "%s\n", v.table(columns, true))
	}
	t := program.NewTable(w)
	t.Count("read", r.Read)
	t.Count("acknowledged", r.Acknowledged)
	if s.output != "" {
		t.Count("counts published", r.Published)
	}
	t.Count("windows", r.WindowCount)
	if s.timestampAttribute != "" {
		t.Count("bad timestamps", r.BadTimestamps)
	}
	if r.Late != nil {
		t.Count("late", *r.Late)
	}
	t.Seconds("seconds", r.Seconds)
	t.Flush()
}
