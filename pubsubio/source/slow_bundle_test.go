package source

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

// A leaseBook is a service that delivers numbered messages under leases of a length,
// and again what lapses.
type leaseBook struct {
	period time.Duration
	data   []byte

	mu        sync.Mutex     // guards all below
	fresh     int            // the next message that was never delivered
	total     int            // messages in all
	deadlines map[int]lended // of what is out
	settled   map[int]bool
	again     []int // lapsed or returned
	lapsed    int
	n         int // deliveries
}

type lended struct {
	ackID string
	until time.Time
}

// next returns up to n messages to deliver, while fewer than most are out.
func (b *leaseBook) next(n, most int) []*pubsubpb.ReceivedMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for id, l := range b.deadlines {
		if !now.Before(l.until) {
			delete(b.deadlines, id)
			b.again = append(b.again, id)
			b.lapsed++
		}
	}
	var ms []*pubsubpb.ReceivedMessage
	for len(ms) < n && len(b.deadlines) < most {
		id := b.fresh
		switch {
		case len(b.again) > 0:
			id, b.again = b.again[0], b.again[1:]
		case b.fresh < b.total:
			b.fresh++
		default:
			return ms
		}
		if b.settled[id] {
			continue
		}
		b.n++
		l := lended{fmt.Sprint(id, "/", b.n), now.Add(b.period)}
		b.deadlines[id] = l
		m := received(l.ackID, fmt.Sprint(id), now)
		m.Message.Data = b.data
		ms = append(ms, m)
	}
	return ms
}

// settle hears what becomes of deliveries: a deadline, or none for acknowledged.
func (b *leaseBook) settle(ids []string, deadline *time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ackID := range ids {
		var id, n int
		_, _ = fmt.Sscanf(ackID, "%d/%d", &id, &n)
		l, out := b.deadlines[id]
		switch {
		case deadline == nil:
			b.settled[id] = true
			delete(b.deadlines, id)
		case !out || l.ackID != ackID:
		case *deadline == 0:
			delete(b.deadlines, id)
			b.again = append(b.again, id)
		default:
			b.deadlines[id] = lended{ackID, time.Now().Add(*deadline)}
		}
	}
}

func (b *leaseBook) done() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.settled) == b.total
}

// One bundle in a hundred takes half a minute. The subscription's own deadline, of ten
// seconds say, is not that of a stream, which asks for its own. What waits in the
// transport meanwhile, because the buffer is full, has its lease running.
func TestReader_HalfAMillionMessagesAndSlowBundles(t *testing.T) {
	for name, tc := range map[string]struct {
		messages     int
		maxExtension time.Duration
		lapses       bool
	}{
		"leases outlast them": {500_000, time.Hour, false},
		"leases do not":       {100_000, 15 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { slowBundles(t, tc.messages, tc.maxExtension, tc.lapses) })
		})
	}
}

func slowBundles(t *testing.T, messages int, maxExtension time.Duration, lapses bool) {
	t.Helper()
	const perBundle, response = 1000, 1000
	book := &leaseBook{
		data: make([]byte, 1024), total: messages,
		deadlines: make(map[int]lended), settled: make(map[int]bool),
	}
	service := newFakeService()
	c := service.calls()
	c.ack = func(_ context.Context, ids []string) error { book.settle(ids, nil); return nil }
	c.modify = func(_ context.Context, ids []string, d time.Duration) error { book.settle(ids, &d); return nil }
	var cfg Config
	cfg.Subscriber.MaxExtension = maxExtension
	g := newGroup("test", cfg, run.Binding{Rule: run.Finalized}, new(stats.Source))
	f := &fixture{t: t, service: service, group: g, reader: g.openLocked("reader", testSubscription, c)}
	book.period = f.leasePeriod() // What the one stream asks for.
	ended := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			ms := book.next(response, f.config.Subscriber.MaxOutstandingMessages)
			if len(ms) == 0 {
				select {
				case <-ended:
					return
				case <-f.group.changed.changed(): // Something was answered.
					continue
				}
			}
			select {
			case service.send <- ms:
			case <-ended:
				return
			}
		}
	})
	var out []delivery
	for bundle := uint64(1); !book.done(); bundle++ {
		a := f.begin()
		taken := 0
		for taken < perBundle {
			var err error
			if out, err = f.take(a, out[:0], min(maxChunk, perBundle-taken), 1<<30); err != nil {
				t.Fatal(err)
			}
			if taken += len(out); len(out) == 0 {
				break
			}
		}
		if bundle%100 == 50 {
			pass(30 * time.Second)
		} else {
			pass(10 * time.Millisecond)
		}
		f.finish(a, taken)
		f.signal(a, signalAt(2*bundle, 2*bundle+1))
		if bundle > 100_000 {
			t.Fatalf("%d of %d settled", len(book.settled), messages)
		}
	}
	close(ended)
	sending.Wait()
	f.end()
	again := f.counts.Redelivered.Load() + f.counts.Lapsed.Load()
	if lapses != (book.lapsed > 0) || lapses != (again > 0) {
		t.Errorf("%d leases lapsed; the reader counted %d messages that came again or were dropped", book.lapsed, again)
	}
	if n := int(f.counts.Acknowledged.Load()); n < messages {
		t.Errorf("%d of %d acknowledged", n, messages)
	}
}
