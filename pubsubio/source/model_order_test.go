package source

import (
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// Under PerKey, what a runner makes durable has the messages of a key in the order in
// which they were published: a message comes for the first time after all earlier
// ones. It may come again, and with it those that follow.
func TestModel_KeepsTheOrderOfAKey(t *testing.T) {
	ordered := modelConduct{Ordered: true}
	checkModels(t, map[string]modelPlan{
		"atomic residuals, finalized":      {kind: atomicResiduals, rule: run.Finalized, Conduct: ordered},
		"work items, finalized or resumed": {kind: workItems, rule: run.FinalizedOrResumed, Conduct: ordered},
		"checkpoints, two rounds":          {kind: checkpoints, rule: run.TwoRounds, Conduct: ordered},
	})
}
