package integration

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// Old messages were never acknowledged; acknowledgements were many times what was
// published.
func TestPrism_C01_BacklogIsAcknowledgedOnce(t *testing.T) {
	for name, run := range rules {
		t.Run(name, func(t *testing.T) {
			const n = 10_000
			srv := newServer(t)
			publish(t, srv, inTopic, 0, n)
			must(t, run(relayOf(srv, options.Limit{MaxMessages: n}), within(t, 30*time.Second)))
			s := srv.Stats(inSub)
			if s.Acknowledged != n || s.Redelivered != 0 || s.StaleAcks != 0 || s.Lapsed != 0 || s.Extensions > 3*n {
				t.Errorf("want %d acknowledged, none redelivered: %+v", n, s)
			}
			acks := 0
			for d, times := range acknowledged(srv, inSub) {
				acks += times
				if times != 1 {
					t.Errorf("%s was acknowledged %d times", d, times)
				}
			}
			if acks != n {
				t.Errorf("%d acknowledgements of %d messages", acks, n)
			}
			expectArrived(t, srv, true)
		})
	}
}

// A message comes again while its first copy is in a bundle: which of the two
// acknowledgement ids counts? At its worst the service ignores an old one.
func TestPrism_C05_ARedeliveryWhileHeldIsNotEmittedTwice(t *testing.T) {
	// The server lets leases lapse long before the source extends them.
	srv := newServer(t, func(c *pubsubtest.Config) { c.LeaseSecond, c.IgnoreStaleAcks = 2*time.Second/60, true })
	const n = 200
	publish(t, srv, inTopic, 0, n)
	r := relayOf(srv, options.Limit{})
	held := make(chan struct{})
	r.probe = &probe{before: func(ctx context.Context, m *message.Message) error {
		if string(m.Data) != "0000000" {
			return nil
		}
		select {
		case <-held: // The whole of it comes again while the first is held.
		case <-ctx.Done():
		}
		return nil
	}}
	p := r.build()
	j := start(t, time.Minute, func(ctx context.Context) error { return runPipeline(ctx, p) })
	ctx := within(t, 30*time.Second)
	// The server counts what it has sent, the read what has come.
	for pubsubio.CountsOf(p).Redelivered < n {
		work(ctx, 10*time.Millisecond)
		j.running(t)
	}
	close(held)
	awaitAcknowledged(ctx, t, srv, inSub, n)
	j.running(t)
	if got := r.probe.passed.Load(); got != n {
		t.Errorf("%d messages were emitted, not %d", got, n)
	}
	expectArrived(t, srv, true)
}

// Half of the acknowledgements came too late, though leases were to be extended
// for an hour; messages in the buffer had no lease at all.
//
// A lease is a minute, as the source asks for it, so this takes three.
func TestPrism_C02_C03_ABundleOfThreeLeasesCausesNoRedelivery(t *testing.T) {
	if os.Getenv(soakEnv) == "" {
		t.Skipf("takes more than three minutes; set %s=1 (the tests of package source cover it in virtual time)", soakEnv)
	}
	const n, lease = 3000, time.Minute
	srv := newServer(t)
	publish(t, srv, inTopic, 0, n)
	r := relayOf(srv, options.Limit{})
	r.source.Subscriber.MaxRecordsPerBundle = n / 2 // The other half stays in the buffer.
	r.probe = &probe{before: func(ctx context.Context, m *message.Message) error {
		if string(m.Data) == "0000000" {
			work(ctx, 3*lease+lease/6)
		}
		return nil
	}}
	j := start(t, 5*time.Minute, r.run)
	awaitAcknowledged(within(t, 5*time.Minute), t, srv, inSub, n)
	j.running(t)
	if s := srv.Stats(inSub); s.Lapsed != 0 || s.Redelivered != 0 || s.Extensions < 3*n {
		t.Errorf("want each lease extended, none lapsed: %+v", s)
	}
	expectArrived(t, srv, true)
}

// soakEnv in the environment asks for the tests that take minutes.
const soakEnv = "PUBSUBIO_SOAK"

// work is what a slow step does for that long.
func work(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
