package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// A report is what a relay has done, as --report writes it.
type report struct {
	Read              int64   `json:"read"`
	Published         int64   `json:"published"`
	Skipped           int64   `json:"skipped"`
	Failed            int64   `json:"failed"`
	Acknowledged      int64   `json:"acknowledged"`
	Returned          int64   `json:"returned"`
	Redelivered       int64   `json:"redelivered"`
	Seconds           float64 `json:"seconds"`
	MessagesPerSecond float64 `json:"messages_per_second"`
}

func newReport(c pubsubio.Counts, elapsed time.Duration) report {
	r := report{
		Read:         c.Read,
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

// unacknowledged is the error of a relay that has published messages and not
// acknowledged them: nil where there are none. It is for a relay that has no other
// error, which would be the reason.
func (r report) unacknowledged() error {
	n := r.Published - r.Acknowledged
	if n <= 0 {
		return nil
	}
	return fmt.Errorf("%s of %s published messages were not acknowledged: they will come again and be published twice", grouped(n), grouped(r.Published))
}

func (r report) writeFile(path string) error {
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(out, '\n'), 0o644)
}

// printTable writes r, and what the embedded server says of it if it was asked.
func printTable(w io.Writer, r report, check *verdict) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name, value string) { fmt.Fprintf(t, "%s\t%s\t\n", name, value) }
	if check != nil {
		row("sent", grouped(check.sent))
	}
	row("read", grouped(r.Read))
	row("published", grouped(r.Published))
	row("skipped", grouped(r.Skipped))
	row("failed", grouped(r.Failed))
	row("acknowledged", grouped(r.Acknowledged))
	row("returned", grouped(r.Returned))
	row("redelivered", grouped(r.Redelivered))
	if check != nil {
		row("arrived", grouped(check.arrived))
		row("arrived again", grouped(check.again))
	}
	row("seconds", strconv.FormatFloat(r.Seconds, 'f', 3, 64))
	row("messages/second", grouped(int64(r.MessagesPerSecond)))
	_ = t.Flush() // as fmt.Fprint: a lost standard output tells nobody anything
}

// grouped writes n with a comma between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var out []byte
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return string(out)
}
