package main

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/sdf"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
)

func init() {
	register.DoFn5x2[context.Context, beam.BundleFinalization, *sdf.LockRTracker, []byte, func(beam.EventTime, []byte), sdf.ProcessContinuation, error](&exampleFn{})
	register.Emitter2[beam.EventTime, []byte]()
}

// exampleMessages is how many messages example moves, at most: those that the client
// lets a program hold. The transform acknowledges what its first bundle emitted. Of a
// later bundle it acknowledges nothing, for the SDK never calls what that registers.
const exampleMessages = 1000

// readExample reads with Beam's own example of a transform for Pub/Sub.
func readExample(ctx context.Context, j job) error {
	p, s := beam.NewPipelineWithRoot()
	fn := &exampleFn{Endpoint: j.endpoint, Subscription: j.phase.subscription()}
	count(s, beam.ParDo(s, fn, beam.Impulse(s)))
	ended := make(chan error, 1)
	go func() { // ends with the process: prism may wait for the bundle
		_, err := prism.Execute(ctx, p)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// exampleFn is pubSubRead of examples/native_wordcap/nativepubsubio, Beam 2.77.0
// (Apache License 2.0), statement by statement. That package itself is not used: it
// needs version 1 of the client, which this module does not depend on. This one is on
// version 2, and is told where the server is.
type exampleFn struct {
	Endpoint     string
	Subscription string

	client    *pubsub.Client
	processed []*pubsub.Message
}

// CreateInitialRestriction is the subscription.
func (fn *exampleFn) CreateInitialRestriction([]byte) string { return fn.Subscription }

// CreateTracker returns the tracker of one attempt.
func (fn *exampleFn) CreateTracker(rest string) *sdf.LockRTracker {
	return sdf.NewLockRTracker(&exampleTracker{subscription: rest})
}

// RestrictionSize is the same of all.
func (fn *exampleFn) RestrictionSize([]byte, string) float64 { return 1 }

// SplitRestriction never splits.
func (fn *exampleFn) SplitRestriction(_ []byte, rest string) []string { return []string{rest} }

// Setup connects.
func (fn *exampleFn) Setup(ctx context.Context) (err error) {
	if fn.client == nil {
		fn.client, err = newClient(ctx, fn.Endpoint)
	}
	return err
}

// exampleTimeout is how long a bundle waits for another message.
const exampleTimeout = 5 * time.Second

// ProcessElement emits until nothing has come for a while.
func (fn *exampleFn) ProcessElement(ctx context.Context, bf beam.BundleFinalization, rt *sdf.LockRTracker, _ []byte, emit func(beam.EventTime, []byte)) (sdf.ProcessContinuation, error) {
	bf.RegisterCallback(5*time.Minute, func() error {
		for _, m := range fn.processed {
			m.Ack()
		}
		fn.processed = nil
		return nil
	})
	if !rt.TryClaim(fn.Subscription) {
		return sdf.ResumeProcessingIn(5 * time.Second), nil
	}
	receiving, cancel := context.WithCancel(ctx)
	defer cancel()
	messages := make(chan *pubsub.Message, 1)
	go func() { // ends with receiving
		err := fn.client.Subscriber(fn.Subscription).Receive(receiving, func(_ context.Context, m *pubsub.Message) { messages <- m })
		if err != nil && !errors.Is(err, context.Canceled) {
			cancel()
			close(messages)
		}
	}()
	timeout := time.NewTimer(exampleTimeout)
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				return sdf.StopProcessing(), nil
			}
			fn.processed = append(fn.processed, m)
			emit(beam.EventTime(m.PublishTime.UnixMilli()), m.Data)
			timeout.Reset(exampleTimeout)
		case <-timeout.C:
			return sdf.ResumeProcessingIn(10 * time.Second), nil
		}
	}
}

// exampleTracker is SubscriptionRTracker of the same package.
type exampleTracker struct {
	subscription string
	done         bool
}

// TryClaim implements sdf.RTracker.
func (t *exampleTracker) TryClaim(pos any) bool {
	name, ok := pos.(string)
	return ok && name == t.subscription
}

// TrySplit implements sdf.RTracker.
func (t *exampleTracker) TrySplit(fraction float64) (primary, residual any, err error) {
	if fraction != 0 {
		return t.subscription, "", nil
	}
	rest := t.subscription
	t.subscription, t.done = "", true
	return "", rest, nil
}

// GetError implements sdf.RTracker.
func (t *exampleTracker) GetError() error { return nil }

// GetProgress implements sdf.RTracker.
func (t *exampleTracker) GetProgress() (done, remaining float64) { return 1, 0 }

// IsDone implements sdf.RTracker.
func (t *exampleTracker) IsDone() bool { return t.done }

// IsBounded implements sdf.BoundableRTracker.
func (t *exampleTracker) IsBounded() bool { return false }

// GetRestriction implements sdf.RTracker.
func (t *exampleTracker) GetRestriction() any { return t.subscription }
