package relay

import (
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// figures are what a relay has done so far.
type figures struct {
	pubsubio.Counts
	// Filtered is how many messages --filter has kept back.
	Filtered int64
}

// showProgress starts to tell what now says, up to total messages that were read where
// that is known, until stop is called.
func showProgress(c *program.Console, total int64, now func() figures) (stop func()) {
	return program.ShowProgress(c, program.Progress{
		What:  "relaying",
		Unit:  "messages",
		Total: total,
		Done:  func() int64 { n := now(); return n.Published + n.Filtered },
		Line: func(perSecond int64) string {
			n := now()
			done := "published " + program.Grouped(n.Published)
			if n.Filtered > 0 {
				done = "filtered " + program.Grouped(n.Filtered) + " and " + done
			}
			return fmt.Sprintf("read %s, %s (%s/s), acknowledged %s",
				program.Grouped(n.Read), done, program.Grouped(perSecond), program.Grouped(n.Acknowledged))
		},
	})
}
