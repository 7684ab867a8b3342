package integration

import (
	"context"
	"os"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() {
	beam.RegisterFunction(drop)
	helpers["relay"] = relayHelper
	helpers["source"] = sourceHelper
}

func drop(*message.Message) {}

// relayHelper relays with the default options.
func relayHelper(ctx context.Context, t task) (usage, error) {
	stop := profileHeap(t)
	defer stop()
	return usage{}, relayAt(t.Endpoint, options.Limit{MaxMessages: t.Messages}).run(ctx)
}

// sourceHelper reads and drops with the default options.
func sourceHelper(ctx context.Context, t task) (usage, error) {
	stop := profileHeap(t)
	defer stop()
	p, s := beam.NewPipelineWithRoot()
	beam.ParDo0(s, drop, source.Read(s, relayAt(t.Endpoint, options.Limit{MaxMessages: t.Messages}).source, source.Message))
	return usage{}, pubsubio.Run(ctx, p)
}

// profileHeap writes a heap profile after a second, where the task asks for one.
func profileHeap(t task) (stop func()) {
	if t.HeapProfile == "" {
		return func() {}
	}
	timer := time.AfterFunc(time.Second, func() {
		if f, err := os.Create(t.HeapProfile); err == nil {
			_ = pprof.Lookup("heap").WriteTo(f, 0)
			_ = f.Close()
		}
	})
	return func() { timer.Stop() }
}

// maxResident is what a small container has.
const maxResident = 256 << 20

// A default buffer of a gigabyte, or a goroutine for each message, kills a small
// container.
func TestPrism_C07_AMillionMessagesFitIntoASmallContainer(t *testing.T) {
	measured(t)
	const n = 1_000_000
	for _, name := range []string{"source", "relay"} {
		t.Run(name, func(t *testing.T) {
			d := startDaemon(t, n)
			emulator.Dial(t, d.endpoint).CreateTopic(outTopic)
			began := time.Now()
			u := runHelper(within(t, 2*time.Minute), t, name, task{Endpoint: d.endpoint, Messages: n, HeapProfile: os.Getenv("PUBSUBIO_HEAP_PROFILE")})
			t.Logf("%d messages of 1 KB in %v, at most %d MB resident", n, time.Since(began).Round(time.Millisecond), u.PeakBytes>>20)
			if u.PeakBytes > maxResident {
				t.Errorf("%d MB were resident, more than %d", u.PeakBytes>>20, maxResident>>20)
			}
			published, subscriptions := d.counts(t)
			if s := subscriptions[inSub]; s.Acknowledged != n || s.Outstanding != 0 || s.Redelivered != 0 {
				t.Errorf("want %d acknowledged and none redelivered: %+v", n, s)
			}
			if name == "relay" && published[outTopic] != n {
				t.Errorf("%d were published of %d", published[outTopic], n)
			}
		})
	}
}

func TestPrism_C07_ASlowSinkHoldsTheSourceBack(t *testing.T) {
	const n = 60_000
	srv := newServer(t, func(c *pubsubtest.Config) { c.Events, c.KeepPublished = 0, 0 })
	must(t, srv.Preload(inTopic, n, &message.Message{Data: make([]byte, 1024)}))
	srv.Delay("Publish", 50*time.Millisecond)
	r := relayOf(srv, options.Limit{})
	r.source.Subscriber.BufferMaxMessages = 1000
	r.source.Subscriber.MaxRecordsPerBundle = 1000
	j := start(t, time.Minute, r.run)
	must(t, srv.AwaitPublished(within(t, 30*time.Second), outTopic, 5000))
	s := srv.Stats(inSub)
	if err := j.stop(); err == nil {
		t.Error("the pipeline ended by itself")
	}
	// The buffer and a bundle, both overshot by a response, and what the
	// transport holds: a window of 1 MB.
	t.Logf("at most %d messages were outstanding", s.MaxOutstanding)
	if s.MaxOutstanding > 10_000 {
		t.Errorf("%d messages were outstanding at once", s.MaxOutstanding)
	}
	expectSettled(t, srv, inSub)
}
