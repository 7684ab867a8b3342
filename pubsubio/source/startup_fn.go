package source

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

func init() {
	beam.RegisterType(reflect.TypeFor[startupFn]())
	register.Emitter1[assignment]()
}

// startupFn runs the startup of the Read and turns the impulse into one element for
// each split of each subscription. The runner keeps its output, so that it runs once
// for a job, and the nonces that it mints last as long as the job; a bundle that is
// tried again mints others, and the first are never used.
type startupFn struct {
	settings
}

// ProcessElement emits the assignments once every subscription is in order.
func (fn *startupFn) ProcessElement(ctx context.Context, _ []byte, emit func(assignment)) error {
	started, err := fn.startUp(ctx)
	if started == nil {
		return err
	}
	cfg := fn.Config.withDefaults()
	read := uuid.NewString()
	for _, subscription := range cfg.Subscriptions {
		for split := range cfg.Splits {
			emit(assignment{
				Version: version, ReadNonce: read, ReaderNonce: uuid.NewString(),
				Subscription: subscription.Name, Split: split, MaxDelivery: started.maxDelivery(subscription.Name),
			})
		}
	}
	return nil
}

// startUp runs the startup. None without an error is one that was told to stop: there
// is nothing to read then, and no fault.
func (s *settings) startUp(ctx context.Context) (*startup, error) {
	if run.HasEnded(s.Binding.RunID) {
		return nil, errRunEnded
	}
	calls, err := dialStartup(s.Config)
	if err != nil {
		return nil, fmt.Errorf("source: connect to look up subscriptions: %w", err)
	}
	defer calls.close()
	started := newStartup(s.Config.withDefaults(), calls)
	started.letters = s.letters()
	ready, err := startUnless(ctx, run.Find(s.Binding.RunID).Stopping(), started)
	if started.mayHaveCreated() { // Also where it has failed since.
		stats.ForSource(s.Nonce).Created.Store(true)
	}
	if !ready {
		return nil, err
	}
	return started, nil
}

// startUnless runs a startup that the closing of stop cuts off: an outage would keep
// a run from ending for minutes.
func startUnless(ctx context.Context, stop <-chan struct{}, s *startup) (ready bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	})
	err = s.run(ctx)
	cancel()
	watch.Wait()
	select {
	case <-stop:
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return false, err
	default:
		return err == nil, err
	}
}
