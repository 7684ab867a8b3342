package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A trickle is a bundle that finds two messages, which came every apart, and is to get
// others so.
type trickle struct {
	apart  time.Duration
	adjust func(*Config)
	// after is done 1 ms after the bundle's beginning.
	after func(cancel context.CancelFunc, f *fixture, r *run.Run)
}

// drained says what the bundle does.
func (c trickle) drained(t *testing.T) (emitted int, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var cfg Config
		if c.adjust != nil {
			c.adjust(&cfg)
		}
		r := run.Start(run.Finalized, true)
		g, err := groupOf(nonceOf(t), cfg, r.Binding, new(stats.Source))
		if err != nil {
			t.Fatal(err)
		}
		f := fixtureIn(t, g, "reader")
		a := f.begin()
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		var sender sync.WaitGroup
		sent := func(i int) bool {
			select {
			case f.service.send <- []*pubsubpb.ReceivedMessage{received(fmt.Sprint("b", i), fmt.Sprint("n", i), time.Now())}:
				return true
			case <-stopped:
				return false
			}
		}
		sent(1)
		pass(c.apart)
		sent(2)
		synctest.Wait()
		sender.Go(func() {
			for i := 3; ; i++ {
				select {
				case <-time.After(c.apart):
				case <-stopped:
					return
				}
				if !sent(i) {
					return
				}
			}
		})
		if c.after != nil {
			time.AfterFunc(time.Millisecond, func() { c.after(cancel, f, r) })
		}
		quick := registration{name: "quick", bind: func(*emitter) boundDecoder { return func(*message.Message) error { return nil } }}
		v := &visit{
			group: f.group, reader: f.reader, attempt: a, size: 1,
			budget:  newBudget(f.config.Subscriber),
			emit:    newEmitter(quick, nil),
			refused: (&settings{}).newDisposal(nil),
		}
		began := time.Now()
		if err := v.drain(ctx); err != nil {
			t.Fatal(err)
		}
		emitted, took = v.emitted, time.Since(began)
		cancel()
		close(stopped)
		sender.Wait()
		pass(time.Millisecond)
		if err := r.End(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return emitted, took
}

// A bundle for each message costs a runner more than the message. But nothing that ends
// a bundle, or is in need of its end, may wait for that.
func TestVisit_WaitsABitForMore(t *testing.T) {
	const ms = time.Millisecond
	subscriber := func(o options.Subscriber) func(*Config) { return func(c *Config) { c.Subscriber = o } }
	long := subscriber(options.Subscriber{BundleFillDelay: time.Second})
	for name, c := range map[string]struct {
		trickle
		emitted int
		took    time.Duration
	}{
		"by default":                           {trickle{apart: 2 * ms}, 4, 5 * ms},
		"longer":                               {trickle{apart: 2 * ms, adjust: subscriber(options.Subscriber{BundleFillDelay: 29 * ms})}, 16, 29 * ms},
		"not at all":                           {trickle{apart: 2 * ms, adjust: subscriber(options.Subscriber{BundleFillDelay: options.Disabled})}, 2, 0},
		"not for what comes seldom":            {trickle{apart: 6 * ms}, 2, 0},
		"until the bundle ends":                {trickle{apart: 2 * ms, adjust: subscriber(options.Subscriber{MaxBundleDuration: 3 * ms})}, 3, 3 * ms},
		"until it has enough":                  {trickle{apart: 2 * ms, adjust: subscriber(options.Subscriber{MaxRecordsPerBundle: 3})}, 3, 2 * ms},
		"until flow control lets nothing come": {trickle{apart: 2 * ms, adjust: subscriber(options.Subscriber{MaxOutstandingMessages: 3})}, 3, 2 * ms},
		"until it is cancelled": {trickle{apart: 100 * ms, adjust: long, after: func(cancel context.CancelFunc, _ *fixture, _ *run.Run) {
			cancel()
		}}, 2, ms},
		"until the run is to stop": {trickle{apart: 100 * ms, adjust: long, after: func(_ context.CancelFunc, _ *fixture, r *run.Run) {
			r.Stop()
		}}, 2, ms},
		"until the next is to fail": {trickle{apart: 100 * ms, adjust: long, after: func(_ context.CancelFunc, f *fixture, _ *run.Run) {
			f.setFailure(errors.New("refused"))
		}}, 2, ms},
		"until it is overtaken": {trickle{apart: 100 * ms, adjust: long, after: func(_ context.CancelFunc, f *fixture, _ *run.Run) {
			if _, err := f.claim("", "", "another", true); err != nil {
				f.t.Error(err)
			}
		}}, 2, ms},
		"until another reader has messages": {trickle{apart: 100 * ms, adjust: long, after: func(_ context.CancelFunc, f *fixture, _ *run.Run) {
			other := new(reader)
			f.group.filled.note(other, false, true)
			f.group.changed.signal()
		}}, 2, ms},
	} {
		t.Run(name, func(t *testing.T) {
			if emitted, took := c.drained(t); emitted != c.emitted || took != c.took {
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
		{Config{}, 5 * time.Millisecond},
		{Config{Ordering: options.PerKey}, options.Disabled},
		{Config{Ordering: options.PerKey, Subscriber: options.Subscriber{BundleFillDelay: time.Second}}, time.Second},
	} {
		if got := c.config.withDefaults().Subscriber.BundleFillDelay; got != c.want {
			t.Errorf("%v, %v: %v, want %v", c.config.Ordering, c.config.Subscriber.BundleFillDelay, got, c.want)
		}
	}
}
