package publish

import (
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A guardrail counts rejections with no success between them. It is guarded by
// the pool's lock.
type guardrail struct {
	limit int // set once; options.Unbounded: none
	count int
	runs  int // how often the count began
}

// rejections are what a bundle has in a run of the count.
type rejections struct{ run, count int }

// succeeded starts the count again.
func (g *guardrail) succeeded() {
	if g.count > 0 {
		g.restart()
	}
}

func (g *guardrail) restart() {
	g.count = 0
	g.runs++
}

// rejected counts a rejection, for err, of the bundle that has mine. At the limit it
// starts the count again, for the retry, and returns what the bundle fails with.
func (g *guardrail) rejected(err error, mine *rejections) error {
	g.count++
	if mine.run != g.runs {
		*mine = rejections{run: g.runs}
	}
	mine.count++
	if g.limit == options.Unbounded || g.count < g.limit {
		return nil
	}
	count := g.count
	g.restart()
	return &guardrailError{count: count, last: err}
}

// takeBack takes a failed bundle's rejections out of the count: they come again
// with it, and would count twice.
func (g *guardrail) takeBack(mine *rejections) {
	if mine.run == g.runs {
		g.count -= mine.count
	}
	*mine = rejections{}
}

// A guardrailError says that too many messages in a row were rejected. It
// unwraps to the last rejection.
type guardrailError struct {
	count int
	last  error
}

func (e *guardrailError) Error() string {
	return fmt.Sprintf("%d messages in a row were rejected, none succeeded between them (options.Publisher.MaxConsecutiveRejections); mend what makes them, or the topic's schema; the last: %v", e.count, e.last)
}

// Unwrap returns the last rejection.
func (e *guardrailError) Unwrap() error { return e.last }
