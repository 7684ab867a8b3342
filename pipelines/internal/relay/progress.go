package relay

import (
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// figures are what a relay has done so far.
type figures struct {
	pubsubio.Counts
	// Filtered is how many messages --filter has kept back.
	Filtered int64
}

// figuresOf are what p and the relay's own steps have done. A message without a topic counts
// with those that could not be published.
func figuresOf(p *beam.Pipeline, t *tally) figures {
	f := figures{pubsubio.CountsOf(p), t.filtered.Load()}
	f.Failed += t.topicless.Load()
	return f
}

// showProgress starts to tell what now says, up to total messages that were read where
// that is known, until stop is called.
func showProgress(c *program.Console, total int64, now func() figures) (stop func()) {
	return program.ShowProgress(c, program.Progress{
		What:  "relaying",
		Unit:  "messages",
		Total: total,
		Done:  func() int64 { n := now(); return n.Published + n.Filtered + n.Failed },
		Line: func(perSecond int64) string {
			n := now()
			done := "published " + program.Grouped(n.Published)
			if n.Filtered > 0 {
				done = "filtered " + program.Grouped(n.Filtered) + " and " + done
			}
			if n.Failed > 0 {
				done = "failed " + program.Grouped(n.Failed) + ", " + done
			}
			return fmt.Sprintf("read %s, %s (%s/s), acknowledged %s",
				program.Grouped(n.Read), done, program.Grouped(perSecond), program.Grouped(n.Acknowledged))
		},
	})
}
