package relay

import (
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// showProgress starts to tell what counts says, up to total where that is known, until
// stop is called.
func showProgress(c *program.Console, total int64, counts func() pubsubio.Counts) (stop func()) {
	return program.ShowProgress(c, program.Progress{
		What:  "relaying",
		Unit:  "messages",
		Total: total,
		Done:  func() int64 { return counts().Published },
		Line: func(perSecond int64) string {
			n := counts()
			return fmt.Sprintf("read %s, published %s (%s/s), acknowledged %s",
				program.Grouped(n.Read), program.Grouped(n.Published), program.Grouped(perSecond), program.Grouped(n.Acknowledged))
		},
	})
}
