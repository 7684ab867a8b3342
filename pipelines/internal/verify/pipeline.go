package verify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() {
	register.DoFn1x1[*message.Message, error](&tallyFn{})
}

// tallies are those that exist, by nonce: Beam makes a tallyFn anew from its JSON, in
// this process.
var tallies sync.Map

// tallyFn counts messages in a tally. On prism one bundle of a read runs at a time, in
// the order in which the messages came.
type tallyFn struct{ Nonce string }

// ProcessElement counts.
func (fn *tallyFn) ProcessElement(m *message.Message) error {
	t, ok := tallies.Load(fn.Nonce)
	if !ok {
		return fmt.Errorf("verify: no tally %s in this process", fn.Nonce)
	}
	return t.(*tally).add(m, time.Now())
}

func sourceConfig(s settings) source.Config {
	ordering := options.Unordered
	if s.ordering {
		ordering = options.PerKey
	}
	return source.Config{
		Subscriptions:         source.From(s.subscriptions...),
		Ordering:              ordering,
		Limit:                 s.limit,
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
	}
}

// errAllArrived ends a read to which everything has come that was expected.
var errAllArrived = errors.New("everything expected has arrived")

// count runs the pipeline to its end and tells meanwhile how far it is. The error is
// that of pubsubio.Run.
func count(ctx context.Context, s settings, t *tally, screen *program.Console) (elapsed time.Duration, err error) {
	nonce := uuid.NewString()
	tallies.Store(nonce, t)
	defer tallies.Delete(nonce)
	p, scope := beam.NewPipelineWithRoot()
	messages, err := source.TryRead(scope, sourceConfig(s), source.Message)
	if err != nil {
		return 0, err
	}
	beam.ParDo0(scope, &tallyFn{Nonce: nonce}, messages)

	run, end := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { // Ends with run.
		if t.awaitQuiet(run, s.linger) == nil {
			end(errAllArrived)
		}
	})
	stop := program.ShowProgress(screen, t.progress())
	start := time.Now()
	err = pubsubio.Run(run, p)
	elapsed = time.Since(start)
	stop()
	end(nil)
	watch.Wait()
	if context.Cause(run) == errAllArrived && errors.Is(err, pubsubio.ErrStopped) { //nolint:errorlint // end was given it as it is
		err = nil
	}
	return elapsed, err
}

// progress tells how far t is.
func (t *tally) progress() program.Progress {
	total := t.count
	if t.report != nil {
		total = t.report.Published
	}
	arrived := func() int64 {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.arrived
	}
	return program.Progress{
		What:  "verifying",
		Unit:  "messages",
		Total: total,
		Done:  arrived,
		Line: func(perSecond int64) string {
			return fmt.Sprintf("arrived %s (%s/s)", program.Grouped(arrived()), program.Grouped(perSecond))
		},
	}
}
