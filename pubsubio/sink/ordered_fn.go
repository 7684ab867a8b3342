package sink

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/state"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

func init() {
	register.DoFn5x1[context.Context, state.Provider, string, keyed, func(beam.EventTime, Failed), error](&orderedFn{})
}

// How much a bundle holds back to put it in order, before it publishes that and goes
// on: of the keys before the last one, and of that one. A runner that turns records
// round brings a bundle key by key, so that the keys before are complete; the last one
// is not, and its bound is what waits for a shuffle on prism.
const (
	maxHeldBytes    = 16 << 20
	maxHeldKeyBytes = 64 << 20
)

// orderedFn publishes the messages of ordering keys. It is stateful for one reason:
// a runner gives each key of a stateful DoFn to one worker, and one bundle, at a
// time. State is not touched for each message: that is a call to the runner.
type orderedFn struct {
	publication

	// SequenceAttribute is Config.SequenceAttribute.
	SequenceAttribute string
	// Sequence is the number that a key's last message was given.
	Sequence state.Value[int64]
	// RunID is the run of pubsubio.Run, if there is one in this process.
	RunID string

	// Of the bundle that is open.
	keys            map[string]*heldKey
	order           []*heldKey // in order of arrival
	held            int64      // bytes
	messages, bytes int64      // taken in
}

// A heldKey is what a bundle has of one key.
type heldKey struct {
	messages []keyed
	bytes    int64
	state    state.Provider
	last     int64 // number, where they are numbered
}

// JoinRun implements run.Joiner.
func (fn *orderedFn) JoinRun(id string) { fn.RunID = id }

// NeedsState tells pubsubio.Run that a runner without state cannot run it.
func (fn *orderedFn) NeedsState() {}

// Setup finds what the policy names.
func (fn *orderedFn) Setup() error { return fn.find() }

// StartBundle opens a bundle.
func (fn *orderedFn) StartBundle(ctx context.Context, _ func(beam.EventTime, Failed)) error {
	fn.keys, fn.order = make(map[string]*heldKey), nil
	fn.held, fn.messages, fn.bytes = 0, 0, 0
	return fn.start(ctx)
}

// ProcessElement holds a message back until the bundle, or enough of it, is there.
func (fn *orderedFn) ProcessElement(ctx context.Context, p state.Provider, key string, k keyed, _ func(beam.EventTime, Failed)) error {
	held, ok := fn.keys[key]
	if !ok {
		held = new(heldKey)
		if fn.SequenceAttribute != "" {
			held.state = p // which lasts as long as the bundle
		}
		if err := fn.readSequence(held); err != nil {
			return err
		}
		fn.keys[key] = held
		fn.order = append(fn.order, held)
	}
	held.messages = append(held.messages, k)
	size := k.size()
	held.bytes += size
	fn.held += size
	fn.messages++
	fn.bytes += size
	switch {
	case held.bytes >= maxHeldKeyBytes:
		return fn.publish(ctx, nil)
	case fn.held-held.bytes >= maxHeldBytes:
		return fn.publish(ctx, held)
	default:
		return nil
	}
}

// publish hands what is held to the pool, each key's in order, but for one key, of
// which more may come. The keys take turns, a request's worth each: their requests
// go at once, and a key in trouble does not fill the caps before the others have
// begun.
func (fn *orderedFn) publish(ctx context.Context, incomplete *heldKey) error {
	var rest []*heldKey
	for _, held := range fn.order {
		if held != incomplete && len(held.messages) > 0 {
			restoreOrder(held.messages)
			rest = append(rest, held)
		}
	}
	for turn := fn.Pool.Publisher.WithDefaults().BatchElementCount; len(rest) > 0; {
		for _, held := range rest {
			if err := fn.publishOf(ctx, held, turn); err != nil {
				return err
			}
		}
		rest = slices.DeleteFunc(rest, func(held *heldKey) bool { return len(held.messages) == 0 })
	}
	fn.held = 0
	if incomplete != nil {
		fn.held = incomplete.bytes
	}
	fn.forget(incomplete)
	return nil
}

// publishOf hands the next messages of a key to the pool, a turn of them at most.
func (fn *orderedFn) publishOf(ctx context.Context, held *heldKey, turn int) error {
	n := min(turn, len(held.messages))
	for _, k := range held.messages[:n] {
		held.last++
		fn.number(k, held.last)
		if err := fn.add(ctx, k.Topic, k.Message, beam.EventTime(k.At)); err != nil {
			return err
		}
	}
	if held.messages = held.messages[n:]; len(held.messages) == 0 {
		held.messages, held.bytes = nil, 0
	}
	return nil
}

// forget forgets the keys of which nothing is held, where they are not numbered:
// there may be many.
func (fn *orderedFn) forget(incomplete *heldKey) {
	if fn.SequenceAttribute != "" {
		return
	}
	for key, held := range fn.keys {
		if held != incomplete {
			delete(fn.keys, key)
		}
	}
	fn.order = slices.DeleteFunc(fn.order, func(held *heldKey) bool { return held != incomplete })
}

// number adds the sequence number. The message is the DoFn's own: it came through a
// shuffle.
func (fn *orderedFn) number(k keyed, n int64) {
	if fn.SequenceAttribute == "" {
		return
	}
	if k.Message.Attributes == nil {
		k.Message.Attributes = make(map[string]string, 1)
	}
	k.Message.Attributes[fn.SequenceAttribute] = strconv.FormatInt(n, 10)
}

func (fn *orderedFn) readSequence(held *heldKey) error {
	if fn.SequenceAttribute == "" {
		return nil
	}
	n, _, err := fn.Sequence.Read(held.state)
	if err != nil {
		return fmt.Errorf("sink: read the sequence number of an ordering key: %w", err)
	}
	held.last = n
	return nil
}

// writeSequences keeps each key's last number. The state of a bundle that fails is
// not kept: when it is run again, it begins with the same number, and where it has
// the same messages in the same order they get theirs again.
func (fn *orderedFn) writeSequences() error {
	if fn.SequenceAttribute == "" {
		return nil
	}
	for _, held := range fn.order {
		if err := fn.Sequence.Write(held.state, held.last); err != nil {
			return fmt.Errorf("sink: keep the sequence number of an ordering key: %w", err)
		}
	}
	return nil
}

// FinishBundle returns once there is nothing left to do for the bundle's messages.
func (fn *orderedFn) FinishBundle(ctx context.Context, emit func(beam.EventTime, Failed)) error {
	if err := fn.publish(ctx, nil); err != nil {
		return err
	}
	if err := fn.writeSequences(); err != nil {
		return err
	}
	fn.keys, fn.order = nil, nil
	if err := fn.finish(ctx, emit); err != nil {
		return err
	}
	backlog, messages, bytes := run.Find(fn.RunID).Backlog(), fn.messages, fn.bytes
	if scope, ok := finalize.FromContext(ctx); ok {
		scope.OnFinished(func() { backlog.Add(-messages, -bytes) })
	}
	return nil
}
