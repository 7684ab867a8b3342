package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

const (
	// startupConcurrency is how many calls a startup has under way at once, over one
	// connection, on which a front end of the service admits about a hundred. At 50 ms
	// a call, a thousand subscriptions take under two seconds.
	startupConcurrency = 32
	// startupAttempt is how long one call may take.
	startupAttempt = 15 * time.Second
	// startupPatience is how long calls that may succeed later are tried again. A
	// quota for a minute that is used up comes back in it.
	startupPatience = 5 * time.Minute
	// The pauses between rounds of calls double from the first to the last.
	firstStartupPause = time.Second
	lastStartupPause  = 10 * time.Second
	// maxMissing is how often a resource may be told missing before it counts as
	// such. At those pauses that takes 7 s: one that was created a moment ago is seen
	// everywhere by then, and a typo is no hot loop.
	maxMissing = 4
)

// A startup makes sure, before anything is read, that the subscriptions of a Read
// are there and can be read as its Config says, and moves them to where the read
// starts. It finds or creates all of them, checks all, and seeks only where none was
// refused: a seek cannot be taken back.
//
// It may run again, after its end or from the middle, and does the same again: what
// it has created is there, and it seeks to a time that is fixed since construction.
type startup struct {
	config     Config
	calls      startupCalls
	candidates []*candidate
	letters    *dlq.Sender // to the dead-letter queue, nil where there is none
}

// A candidate is a subscription on its way through a startup.
type candidate struct {
	Subscription

	found    *pubsubpb.Subscription // as the service describes it; nil while that is not known
	toCreate bool                   // it is missing, or may be, and has Create
	exists   bool                   // the service has said so when it was to be created
	unseen   bool                   // it may not be looked up
	created  bool                   // this startup has created it, or may have
	refusals []error                // what is wrong with it, and what mends it

	// Of the step under way.
	act     string // as in "look up"
	err     error  // of the last try
	missing int    // tries that found something missing
}

func newStartup(config Config, calls startupCalls) *startup {
	s := &startup{config: config, calls: calls}
	for _, subscription := range config.Subscriptions {
		s.candidates = append(s.candidates, &candidate{Subscription: subscription})
	}
	return s
}

// run is the whole startup. Its error joins all refusals, or says why there is no
// verdict.
func (s *startup) run(ctx context.Context) error {
	if err := s.each(ctx, s.resolve); err != nil {
		return err
	}
	for _, c := range s.candidates {
		if c.found != nil {
			c.refuse(nil, s.config.unfit(c.found)...)
		}
	}
	if err := errors.Join(s.refused(), s.checkQueue(ctx)); err != nil {
		return err
	}
	s.warnUnseen()
	if _, moves := s.config.StartPosition.SeekTime(); !moves {
		return nil
	}
	if err := s.each(ctx, s.seek); err != nil {
		return err
	}
	return s.refused()
}

// checkQueue asks the dead-letter queue, if there is one, whether it can work.
func (s *startup) checkQueue(ctx context.Context) error {
	if s.letters == nil {
		return nil
	}
	if err := s.letters.Check(ctx); err != nil {
		return fmt.Errorf("source: OnDecodeFailure %v: %w", s.config.OnDecodeFailure, err)
	}
	return nil
}

// each takes a step about every candidate until it has succeeded or is refused. What
// may succeed later is tried again in rounds, so that no pause holds up a call. The
// error says why there is no verdict.
func (s *startup) each(ctx context.Context, step func(context.Context, *candidate) error) error {
	began, warned := time.Now(), time.Time{}
	patience, cancel := context.WithTimeout(ctx, startupPatience)
	defer cancel()
	pending := slices.Clone(s.candidates)
	for pause := firstStartupPause; ; pause = min(2*pause, lastStartupPause) {
		round(patience, pending, step)
		pending = slices.DeleteFunc(pending, func(c *candidate) bool { return c.judge(ctx) })
		if len(pending) == 0 {
			return nil
		}
		if pause == lastStartupPause && time.Since(warned) >= warnEvery {
			warned = time.Now()
			warn("the startup waits for an answer; trying again", "call", pending[0].act, "subscription", pending[0].Name,
				"others", len(pending)-1, "for", time.Since(began).Round(time.Second), "status", transport.Describe(pending[0].err))
		}
		if gax.Sleep(patience, pause) != nil {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("source: the startup was cut off: %w", err)
			}
			return gaveUp(pending)
		}
	}
}

// round takes a step about each of the candidates, some at a time, and leaves the
// outcome with them. It starts the goroutines and waits for them.
func round(ctx context.Context, candidates []*candidate, step func(context.Context, *candidate) error) {
	var calls errgroup.Group
	calls.SetLimit(startupConcurrency)
	for _, c := range candidates {
		calls.Go(func() error {
			attempt, cancel := context.WithTimeout(ctx, startupAttempt)
			defer cancel()
			// A try that the end of ctx cuts off says less than the status before it.
			if err := step(attempt, c); err == nil || c.err == nil || ctx.Err() == nil {
				c.err = err
			}
			return nil
		})
	}
	_ = calls.Wait()
}

// judge decides what the outcome of a step means and reports whether the step is
// over.
func (c *candidate) judge(ctx context.Context) bool {
	if c.err == nil {
		c.missing = 0
		return true
	}
	switch transport.Classify(ctx, c.err) {
	case transport.Retryable, transport.Ended:
		return false
	case transport.Missing:
		if c.missing++; c.missing < maxMissing {
			return false
		}
	default:
	}
	c.refuse(c.err, c.explain())
	return true
}

// refuse notes what is wrong with c; err is the status, where there is one.
func (c *candidate) refuse(err error, texts ...string) {
	for _, text := range texts {
		c.refusals = append(c.refusals, &subscriptionError{text: "source: " + c.Name + ": " + text, err: err})
	}
}

// refused joins the refusals, in the order of Config.Subscriptions.
func (s *startup) refused() error {
	var errs []error
	n := 0
	for _, c := range s.candidates {
		if len(c.refusals) > 0 {
			n++
			errs = append(errs, c.refusals...)
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("source: %d of %d subscriptions cannot be read as configured:\n%w", n, len(s.candidates), errors.Join(errs...))
}

// gaveUp is the error where the service has given no verdict for too long.
func gaveUp(pending []*candidate) error {
	c, others := pending[0], ""
	if n := len(pending) - 1; n > 0 {
		others = fmt.Sprintf(" and %d other subscriptions", n)
	}
	return &subscriptionError{
		text: fmt.Sprintf("source: %s %s%s: no verdict in %v; the last status was %s%s", c.act, c.Name, others, startupPatience, transport.Describe(c.err), clause(transport.Remedy(c.err, iam.Grant{}))),
		err:  c.err,
	}
}

// mayHaveCreated reports whether there may be subscriptions that this startup has
// created.
func (s *startup) mayHaveCreated() bool {
	return slices.ContainsFunc(s.candidates, func(c *candidate) bool { return c.created })
}

// maxDelivery returns after how many deliveries the dead-letter policy of a
// subscription takes a message, zero where it has none, or nobody may look.
func (s *startup) maxDelivery(subscription string) int {
	for _, c := range s.candidates {
		if c.Name == subscription {
			return int(c.found.GetDeadLetterPolicy().GetMaxDeliveryAttempts())
		}
	}
	return 0
}

// clause is a remedy as a text goes on with it.
func clause(remedy string) string {
	if remedy == "" {
		return ""
	}
	return "; " + remedy
}
