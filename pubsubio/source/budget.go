package source

import (
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A budget is what one bundle may still emit of one Read. Prism runs the
// restrictions of a stage one after another in one bundle: what bounds a bundle
// belongs to the bundle, or the last restriction would wait for all the others.
// A bundle runs on one goroutine, so a budget has no lock.
type budget struct {
	records  int
	bytes    int64
	duration time.Duration
	until    time.Time
	// fillDelay is how long the bundle may wait for more, and filled when it has.
	fillDelay time.Duration
	filled    time.Time
	emitted   bool             // by any restriction
	waited    bool             // one restriction has waited for messages
	served    map[*reader]bool // readers that have had their turn
}

type budgetKey struct{ group *group }

// budgetOf returns the bundle's budget, made at the first call.
func budgetOf(scope *finalize.Scope, g *group) *budget {
	return scope.Value(budgetKey{g}, func() any { return newBudget(g.config.Subscriber) }).(*budget)
}

func newBudget(o options.Subscriber) *budget {
	b := &budget{
		records:   o.MaxRecordsPerBundle,
		bytes:     o.MaxBundleBytes,
		duration:  o.MaxBundleDuration,
		fillDelay: max(o.BundleFillDelay, 0), // Disabled
		served:    make(map[*reader]bool),
	}
	b.begin()
	return b
}

// begin starts the time that the bundle has.
func (b *budget) begin() { b.until = time.Now().Add(b.duration) }

// share begins the turn of r and returns what it may emit: what remains, divided
// by the readers that have messages and are still to be served.
func (b *budget) share(g *group, r *reader) (records int, bytes int64) {
	b.served[r] = true
	n := 1 + g.ready(b.served)
	return max(b.records/n, min(b.records, 1)), max(b.bytes/int64(n), min(b.bytes, 1))
}

// spend takes what was emitted out of the budget.
func (b *budget) spend(records int, bytes int64) {
	b.records -= records
	b.bytes -= bytes
	b.emitted = b.emitted || records > 0
}
