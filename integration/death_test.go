package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() {
	beam.RegisterFunction(holdForEver)
	helpers["hoarder"] = hoarderHelper
	helpers["slow"] = slowHelper
}

// hoarderHelper reads what it can and lets no bundle end, until it is killed.
func hoarderHelper(ctx context.Context, t task) (usage, error) {
	p, s := beam.NewPipelineWithRoot()
	beam.ParDo0(s, holdForEver, source.Read(s, relayAt(t.Endpoint, options.Limit{}).source, source.Message))
	return usage{}, pubsubio.Run(ctx, p)
}

func holdForEver(ctx context.Context, _ *message.Message) { <-ctx.Done() }

// Two pipelines read a subscription and one of them is killed: the other gets what
// it held when the leases end, which are shortened here.
func TestPrism_TwoPipelinesOfWhichOneDies(t *testing.T) {
	long(t)
	const n, lease = 2000, 6 * time.Second
	srv := newServer(t, func(c *pubsubtest.Config) { c.LeaseSecond = lease / 60 })
	publish(t, srv, inTopic, 0, n)
	text, err := json.Marshal(task{Endpoint: srv.Endpoint()})
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	hoarder := exec.CommandContext(t.Context(), self)
	hoarder.Env = append(os.Environ(), helperEnv+"=hoarder", taskEnv+"="+string(text))
	var errs bytes.Buffer
	hoarder.Stderr = &errs
	must(t, hoarder.Start())
	ctx := within(t, time.Minute)
	if err := srv.Await(ctx, inSub, func(s pubsubtest.Stats) bool { return s.Outstanding == n }); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	must(t, hoarder.Process.Kill())
	_ = hoarder.Wait()
	died := time.Now()
	j := start(t, time.Minute, relayOf(srv, options.Limit{}).run)
	awaitAcknowledged(ctx, t, srv, inSub, n)
	took := time.Since(died)
	t.Logf("the other had all of it %v after the death", took.Round(time.Millisecond))
	if most := lease + stretched(2*time.Second); took > most {
		t.Errorf("the other had all of it %v after the death, later than a lease", took)
	}
	j.running(t)
	expectArrived(t, srv, false)
}

// slowHelper relays a backlog that is far larger than its memory to a slow sink, for a
// while.
func slowHelper(ctx context.Context, t task) (usage, error) {
	r := relayAt(t.Endpoint, options.Limit{MaxDuration: t.Duration})
	p := r.build()
	return usage{}, pubsubio.Run(ctx, p)
}

// C07: a container of 512 MB was killed for the messages that waited for a slow sink.
func TestPrism_C07_SixHundredThousandLargeMessagesAndASlowSink(t *testing.T) {
	measured(t)
	const n, size, most = 600_000, 10 << 10, 512 << 20
	srv := newServer(t, func(c *pubsubtest.Config) { c.Events, c.KeepPublished = 0, 0 })
	must(t, srv.Preload(inTopic, n, &message.Message{Data: make([]byte, size)}))
	srv.Delay("Publish", 100*time.Millisecond)
	u := runHelper(within(t, 2*time.Minute), t, "slow", task{Endpoint: srv.Endpoint(), Duration: 15 * time.Second})
	s := srv.Stats(inSub)
	t.Logf("at most %d MB resident, %d messages relayed, at most %d held (%d MB)", u.PeakBytes>>20, s.Acknowledged, s.MaxOutstanding, s.MaxOutstandingBytes>>20)
	if u.PeakBytes > most {
		t.Errorf("%d MB were resident, more than %d", u.PeakBytes>>20, most>>20)
	}
	if s.Acknowledged == 0 || s.Outstanding != 0 {
		t.Errorf("want some relayed and the rest returned: %+v", s)
	}
}

// A goroutine for each message killed a small container: here their number is the
// same with a message and with thousands.
func TestPrism_C07_GoroutinesDoNotGrowWithMessages(t *testing.T) {
	srv := newServer(t)
	var held atomic.Int64
	gate := make(chan struct{})
	r := relayOf(srv, options.Limit{})
	r.probe = &probe{before: func(ctx context.Context, _ *message.Message) error {
		held.Add(1)
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return nil
	}}
	j := start(t, time.Minute, r.run)
	ctx := within(t, 30*time.Second)
	publish(t, srv, inTopic, 0, 1)
	must(t, srv.Await(ctx, inSub, func(s pubsubtest.Stats) bool { return s.Outstanding == 1 }))
	for held.Load() == 0 {
		work(ctx, time.Millisecond)
	}
	few := len(ours())
	publish(t, srv, inTopic, 1, 5000)
	must(t, srv.Await(ctx, inSub, func(s pubsubtest.Stats) bool { return s.Outstanding == 5001 }))
	if many := len(ours()); many > few+5 {
		t.Errorf("%d goroutines with one message, %d with 5,001", few, many)
	}
	close(gate)
	awaitAcknowledged(ctx, t, srv, inSub, 5001)
	j.running(t)
}

// The counts of a read move while it runs, and Beam's metrics tell them at its end.
func TestPrism_MetricsOfARead(t *testing.T) {
	srv := newServer(t)
	const n = 3000
	r := relayOf(srv, options.Limit{MaxMessages: n})
	r.source.Subscriber.Streams = 2
	p := r.build()
	j := start(t, time.Minute, func(ctx context.Context) error { return runPipeline(ctx, p) })
	ctx := within(t, 30*time.Second)
	awaitStreams(ctx, t, srv, inSub, 2)
	publish(t, srv, inTopic, 0, n/2)
	awaitAcknowledged(ctx, t, srv, inSub, n/2)
	c := pubsubio.CountsOf(p)
	for c.Acknowledged < n/2 || c.PendingAcks > 0 { // The server knows a moment earlier.
		work(ctx, time.Millisecond)
		j.running(t)
		c = pubsubio.CountsOf(p)
	}
	if c.Received != n/2 || c.Read != n/2 || c.CommittedByFinalization != n/2 || c.Commits == 0 || c.LongestCommit > c.CommitTime ||
		c.OpenStreams != 2 || c.Buffered != 0 || c.BufferedBytes != 0 || c.ReadErrors != nil {
		t.Errorf("while it runs: %+v", c)
	}
	publish(t, srv, inTopic, n/2, n/2)
	must(t, j.wait())
	c = pubsubio.CountsOf(p)
	if c.Acknowledged != n || c.OpenStreams != 0 || c.PendingAcks != 0 || c.ShutdownsAbandoned != 0 {
		t.Errorf("at the end: %+v", c)
	}
}
