package source

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// drained is what a bundle does that finds one message and gets another one every 4 ms.
func drained(t *testing.T, o options.Subscriber, change func(context.CancelFunc, *fixture)) (emitted int, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a := f.begin()
		f.service.deliver(1)
		synctest.Wait()
		var others []func() bool
		for i := range 10 {
			more := []*pubsubpb.ReceivedMessage{received(fmt.Sprint("b", i), fmt.Sprint("n", i), time.Now())}
			others = append(others, time.AfterFunc(time.Duration(i+1)*4*time.Millisecond, func() { f.service.send <- more }).Stop)
		}
		if change != nil {
			change(cancel, f)
		}
		quick := registration{name: "quick", bind: func(*emitter) boundDecoder { return func(*message.Message) error { return nil } }}
		v := &visit{
			group: f.group, reader: f.reader, attempt: a, size: 1,
			budget:  newBudget(o.WithDefaults()),
			emit:    newEmitter(quick, nil),
			refused: (&settings{}).newDisposal(nil),
		}
		began := time.Now()
		if err := v.drain(ctx); err != nil {
			t.Fatal(err)
		}
		emitted, took = v.emitted, time.Since(began)
		for _, stop := range others {
			stop()
		}
	})
	return emitted, took
}

// A bundle for each message costs a runner more than the message.
func TestVisit_WaitsABitForMore(t *testing.T) {
	for name, c := range map[string]struct {
		options options.Subscriber
		change  func(context.CancelFunc, *fixture)
		emitted int
		took    time.Duration
	}{
		"by default":          {options.Subscriber{}, nil, 3, 10 * time.Millisecond},
		"longer":              {options.Subscriber{BundleFillDelay: 30 * time.Millisecond}, nil, 8, 30 * time.Millisecond},
		"not at all":          {options.Subscriber{BundleFillDelay: options.Disabled}, nil, 1, 0},
		"until it ends":       {options.Subscriber{MaxBundleDuration: 5 * time.Millisecond}, nil, 2, 5 * time.Millisecond},
		"until it has enough": {options.Subscriber{MaxRecordsPerBundle: 2}, nil, 2, 4 * time.Millisecond},
		"until it is cancelled": {options.Subscriber{}, func(cancel context.CancelFunc, _ *fixture) {
			time.AfterFunc(time.Millisecond, cancel)
		}, 1, time.Millisecond},
		"until another reader has messages": {options.Subscriber{}, func(_ context.CancelFunc, f *fixture) {
			time.AfterFunc(time.Millisecond, func() {
				f.group.filled.note(new(reader), false, true)
				f.group.changed.signal()
			})
		}, 1, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if emitted, took := drained(t, c.options, c.change); emitted != c.emitted || took != c.took {
				t.Errorf("%d messages in %v, want %d in %v", emitted, took, c.emitted, c.took)
			}
		})
	}
}

// A bundle that has nothing yet waits elsewhere, and one at its limit for nothing.
func TestVisit_DoesNotWaitForMoreInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		v := &visit{group: f.group, reader: f.reader, attempt: f.begin(), budget: newBudget(options.Subscriber{}.WithDefaults())}
		began := time.Now()
		if v.fill(t.Context()) {
			t.Error("more has come")
		}
		v.emitted, v.quota = 1, &quota{max: 1}
		v.quota.reserve(1)
		v.quota.settle(1, 1)
		if v.fill(t.Context()) {
			t.Error("more has come")
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it waited %v", took)
		}
	})
}

// The next messages of a key come once the last are acknowledged: to wait for them in
// the bundle would put off both.
func TestConfig_PerKeyWaitsForNoMore(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   time.Duration
	}{
		{Config{}, 10 * time.Millisecond},
		{Config{Ordering: options.PerKey}, options.Disabled},
		{Config{Ordering: options.PerKey, Subscriber: options.Subscriber{BundleFillDelay: time.Second}}, time.Second},
	} {
		if got := c.config.withDefaults().Subscriber.BundleFillDelay; got != c.want {
			t.Errorf("%v, %v: %v, want %v", c.config.Ordering, c.config.Subscriber.BundleFillDelay, got, c.want)
		}
	}
}
