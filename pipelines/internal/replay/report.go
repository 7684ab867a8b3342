package replay

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

// A report is what a replay has done, as --report writes it.
type report struct {
	DryRun bool `json:"dry_run"`
	// Letters is how many were read, each once; Chosen how many of them were to be
	// published, and Left the others.
	Letters int64 `json:"letters"`
	Chosen  int64 `json:"chosen"`
	Left    int64 `json:"left"`
	// Published counts messages that the service took: more than Chosen less
	// FailedAgain where a bundle ran again, or a letter came again.
	Published    int64 `json:"published"`
	FailedAgain  int64 `json:"failed_again"`
	Acknowledged int64 `json:"acknowledged"`
	read         int64 // letters that were emitted, each time they were
	// PartsLeft is how many messages with parts of published letters are still in the
	// subscription.
	PartsLeft int64    `json:"parts_left"`
	partsOf   []string // the ids of those letters
	// Again is by how many more Published and FailedAgain are than Chosen: what was
	// published twice.
	Again   int64   `json:"published_again"`
	Seconds float64 `json:"seconds"`
	Lines   []line  `json:"lines"`
}

func newReport(s settings, seen *survey, c pubsubio.Counts, elapsed time.Duration) report {
	letters, chosen := seen.counts()
	r := report{
		DryRun:  s.DryRun,
		Letters: letters, Chosen: chosen, Left: letters - chosen,
		Published: c.Published, FailedAgain: c.DeadLetters, Acknowledged: c.Acknowledged, read: c.Read,
		Seconds: elapsed.Seconds(),
		Lines:   seen.all(),
	}
	if !s.DryRun {
		r.Again = max(c.Published+c.DeadLetters-chosen, 0)
	}
	return r
}

// unacknowledged is the error of a replay that has published letters and not
// acknowledged them: nil where there are none.
func (r report) unacknowledged() error {
	n := r.read - r.Acknowledged
	if n <= 0 {
		return nil
	}
	return fmt.Errorf("%s of %s replayed letters were not acknowledged: they will come again and be published twice", program.Grouped(n), program.Grouped(r.read))
}

// maxNamed is how many letters an error names.
const maxNamed = 5

// partsStay is the error of a replay after which parts of published letters are still in
// the subscription: nil where there are none.
func (r report) partsStay(subscription string) error {
	if r.PartsLeft == 0 {
		return nil
	}
	what := "1 part of a published letter is"
	if r.PartsLeft > 1 {
		what = program.Grouped(r.PartsLeft) + " parts of published letters are"
	}
	named := strings.Join(r.partsOf[:min(len(r.partsOf), maxNamed)], ", ")
	if n := len(r.partsOf) - maxNamed; n > 0 {
		named += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%s still in %s (%s %s): held by another reader, or not sent again in time; no replay takes such a part, so "+byHand, what, subscription, dlq.IDAttribute, named)
}

// print writes r for people; well says that the replay has not failed.
func (r report) print(w io.Writer, well bool) {
	if r.DryRun {
		fmt.Fprintln(w)
		printLines(w, r.Lines, "WOULD GO TO")
		fmt.Fprintf(w, "\n%s of %s letters would be published; all are left as they were\n", program.Grouped(r.Chosen), program.Grouped(r.Letters))
		return
	}
	sent := "SENT TO"
	if !well {
		sent = "WAS TO GO TO"
	}
	printLines(w, r.Lines, sent)
	fmt.Fprintln(w)
	t := program.NewTable(w)
	t.Count("letters", r.Letters)
	t.Count("left", r.Left)
	t.Count("published", r.Published)
	t.Count("failed again", r.FailedAgain)
	t.Count("published again", r.Again)
	t.Count("acknowledged", r.Acknowledged)
	if r.PartsLeft > 0 {
		t.Count("parts that stay", r.PartsLeft)
	}
	t.Seconds("seconds", r.Seconds)
	t.Flush()
}
