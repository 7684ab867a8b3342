package pubsubtest

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// An Action is a step of what an order makes of a call. The steps are taken in
// their order; what the call asks for is done at [CarryOut], or at the end of the
// steps unless one of them ends the call first.
type Action func(*script)

// A script is the steps of an order.
type script struct {
	before []pause // the effect of the call
	after  []pause
	carry  bool    // the effect takes place before ending
	ending *ending // nil: the call ends as it would
}

// An ending is how a call ends instead of with its own answer.
type ending struct {
	answer     func(*incoming) error // nil with one of the following
	never      bool                  // no answer
	disconnect bool                  // no answer, and the connection breaks
}

// A pause holds a call back: for a time drawn from a range, or until a channel
// is closed.
type pause struct {
	least, most time.Duration
	until       <-chan struct{}
}

func (s *script) add(p pause) {
	if s.carry {
		s.after = append(s.after, p)
	} else {
		s.before = append(s.before, p)
	}
}

func (s *script) end(e ending) {
	if s.ending != nil {
		panicMisuse("an order that ends a call twice")
	}
	s.ending = &e
}

// Fail answers with the status of err. An error without a status counts as
// Unknown; nil and one with the status OK panic.
func Fail(err error) Action {
	st, _ := status.FromError(err)
	if st.Code() == codes.OK {
		panicMisuse("an answer with the status OK: want an error")
	}
	return func(s *script) { s.end(ending{answer: func(*incoming) error { return st.Err() }}) }
}

// CarryOut does what the call asks for, so that the steps after it only concern
// its answer: CarryOut and Fail are a request that is stored and whose answer is
// lost. A call that fails by itself ends here, with its own answer.
func CarryOut() Action { return func(s *script) { s.carry = true } }

// Wait holds the call back for d.
func Wait(d time.Duration) Action { return WaitBetween(d, d) }

// WaitBetween holds the call back for a time drawn evenly from least to most,
// both included; [Rule] has the seed. A most below least panics.
func WaitBetween(least, most time.Duration) Action {
	if most < least {
		panicMisuse("WaitBetween(%v, %v): want the least first", least, most)
	}
	return func(s *script) { s.add(pause{least: least, most: most}) }
}

// WaitFor holds the call back until c is closed or sends.
func WaitFor(c <-chan struct{}) Action {
	return func(s *script) { s.add(pause{until: c}) }
}

// NeverAnswer leaves the call without an answer. It ends when the client gives
// up, or its connection or the server ends.
func NeverAnswer() Action { return func(s *script) { s.end(ending{never: true}) } }

// Disconnect breaks the connection that the call came on, and with it all other
// calls and streams on it. The client may connect again.
func Disconnect() Action { return func(s *script) { s.end(ending{disconnect: true}) } }

// length returns how long the pause lasts.
func (p pause) length(draw *rand.Rand) time.Duration {
	if p.most <= p.least {
		return p.least
	}
	return p.least + time.Duration(draw.Int64N(int64(p.most-p.least)+1))
}

// wait returns once the pause is over, or with the status of ctx's end.
func (p pause) wait(ctx context.Context) error {
	var over <-chan time.Time
	if p.until == nil {
		if p.least <= 0 {
			return nil
		}
		timer := time.NewTimer(p.least)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-p.until:
	case <-ctx.Done():
		return streamContextError(ctx)
	}
	return nil
}

// finish ends a call as its order says.
func (e *ending) finish(ctx context.Context, in *incoming) error {
	switch {
	case e.disconnect:
		breakConnection(ctx)
		return status.Error(codes.Unavailable, "The connection was broken.") // nobody gets it
	case e.never:
		<-ctx.Done()
		return streamContextError(ctx)
	}
	return e.answer(in)
}
