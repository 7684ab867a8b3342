package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func init() {
	register.DoFn3x1[context.Context, *message.Message, func(*message.Message), error](&probeFn{})
	register.Emitter1[*message.Message]()
}

// A probe is where a test puts its hands into a pipeline of this process: a
// DoFn through which the messages pass.
type probe struct {
	// before is called with each message before it is emitted; an error fails
	// the bundle.
	before func(ctx context.Context, m *message.Message) error
	// after is called after it was emitted, with all fused steps behind it done.
	after func(ctx context.Context, m *message.Message) error
	// finish is called at the end of each bundle with its messages.
	finish func(messages []*message.Message)

	passed atomic.Int64
}

// probes are the probes by the name that their DoFn carries, as a DoFn is made
// anew from its JSON.
var (
	probes      sync.Map
	probesNamed atomic.Int64
)

func (p *probe) apply(s beam.Scope, col beam.PCollection) beam.PCollection {
	name := fmt.Sprint("probe", probesNamed.Add(1))
	probes.Store(name, p)
	return beam.ParDo(s, &probeFn{Name: name}, col)
}

type probeFn struct {
	Name string

	bundle []*message.Message
}

func (fn *probeFn) probe() (*probe, error) {
	p, ok := probes.Load(fn.Name)
	if !ok {
		return nil, errors.New("no such probe")
	}
	return p.(*probe), nil
}

func (fn *probeFn) StartBundle(_ context.Context, _ func(*message.Message)) { fn.bundle = nil }

func (fn *probeFn) ProcessElement(ctx context.Context, m *message.Message, emit func(*message.Message)) error {
	p, err := fn.probe()
	if err != nil {
		return err
	}
	if p.finish != nil {
		fn.bundle = append(fn.bundle, m)
	}
	if p.before != nil {
		if err := p.before(ctx, m); err != nil {
			return err
		}
	}
	emit(m)
	p.passed.Add(1)
	if p.after != nil {
		return p.after(ctx, m)
	}
	return nil
}

func (fn *probeFn) FinishBundle(_ context.Context, _ func(*message.Message)) error {
	p, err := fn.probe()
	if err != nil {
		return err
	}
	if p.finish != nil {
		p.finish(fn.bundle)
	}
	return nil
}
