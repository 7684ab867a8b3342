package program

import (
	"context"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
)

// Check asks the service whether what u uses is there and may be used, as far as the
// account may ask, and changes nothing. The report is in the words of the flags; the
// error joins all that is wrong, each fault with what mends it. A service that cannot be
// reached is given five seconds, and is a *check.AbsentError.
//
// A program checks before it runs: a source and a sink wait for minutes for a service
// that may come back, which is right for a job and wrong for a mistyped endpoint.
func Check(ctx context.Context, u Use) (check.Report, error) {
	r, err := check.Run(ctx, u.Configs(), check.Options{})
	if err != nil {
		return check.Report{}, &saidError{u.Say(err.Error()), err}
	}
	r = u.InFlags(r)
	return r, r.Err()
}

// A saidError is an error in the words of the flags.
type saidError struct {
	text string
	err  error
}

func (e *saidError) Error() string { return e.text }
func (e *saidError) Unwrap() error { return e.err }
