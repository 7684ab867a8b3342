package source

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// identified is a delivery of a message that has an id of its own in attribute "id".
func identified(ackID, messageID, id string) *pubsubpb.ReceivedMessage {
	m := received(ackID, messageID, time.Now())
	m.Message.Attributes = map[string]string{"id": id}
	return m
}

func identifying(c *Config) { c.IDAttribute = "id" }

func TestIdentities_ACopyIsAcknowledgedWithItsOriginal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, identifying)
		defer f.end()
		a := f.begin()
		f.service.send <- []*pubsubpb.ReceivedMessage{identified("a1", "m1", "x"), identified("a2", "m2", "x"), identified("a3", "m3", "y")}
		synctest.Wait()
		if got := f.takeIDs(a, 10); fmt.Sprint(got) != "[m1 m3]" {
			t.Errorf("emitted %v", got)
		}
		f.service.send <- []*pubsubpb.ReceivedMessage{identified("a4", "m4", "y")}
		synctest.Wait()
		f.service.want(t, nil, nil)
		f.finish(a, 2)
		f.signal(a, signalAt(1, 2))
		synctest.Wait()
		f.service.want(t, []string{"a1", "a2", "a3", "a4"}, nil)
		// Afterwards a copy is acknowledged as it comes.
		b := f.begin()
		f.service.send <- []*pubsubpb.ReceivedMessage{identified("a5", "m5", "x")}
		synctest.Wait()
		if got := f.takeIDs(b, 10); len(got) > 0 {
			t.Errorf("emitted %v again", got)
		}
		f.service.want(t, []string{"a1", "a2", "a3", "a4", "a5"}, nil)
		if n := f.counts.Copies.Load(); n != 3 {
			t.Errorf("%d copies were counted, want 3", n)
		}
		// Not for ever.
		pass(windowTime)
		f.service.send <- []*pubsubpb.ReceivedMessage{identified("a6", "m6", "x")}
		synctest.Wait()
		if got := f.takeIDs(b, 10); fmt.Sprint(got) != "[m6]" {
			t.Errorf("emitted %v after ten minutes, want m6", got)
		}
	})
}

// A copy that was acknowledged when it came would have been the last one, where the
// bundle of the first failed and that one was lost.
func TestIdentities_ACopyIsReturnedWithItsOriginal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, identifying)
		defer f.end()
		a := f.begin()
		f.service.send <- []*pubsubpb.ReceivedMessage{identified("a1", "m1", "x"), identified("a2", "m2", "x")}
		synctest.Wait()
		f.takeIDs(a, 10)
		f.fail(a)
		synctest.Wait()
		f.service.want(t, nil, []string{"a1", "a2"})
		// The id is forgotten with it.
		b := f.begin()
		f.service.send <- []*pubsubpb.ReceivedMessage{identified("a3", "m2", "x")}
		synctest.Wait()
		if got := f.takeIDs(b, 10); fmt.Sprint(got) != "[m2]" {
			t.Errorf("emitted %v, want m2", got)
		}
	})
}

func TestIdentities_ACopyOfALapsedMessageIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { identifying(c); c.Subscriber.MaxExtension = 20 * time.Second })
		defer f.end()
		f.begin()
		f.service.send <- []*pubsubpb.ReceivedMessage{identified("a1", "m1", "x")}
		pass(15 * time.Second)
		f.service.send <- []*pubsubpb.ReceivedMessage{identified("a2", "m2", "x")}
		pass(15 * time.Second)
		f.service.want(t, nil, []string{"a2"})
		if len(f.byID) != 0 || len(f.identities.originals) != 0 {
			t.Errorf("still held: %v, %v", f.byID, f.identities.originals)
		}
	})
}

func TestIdentities_AMessageWithoutAnIDIsNoCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, identifying)
		defer f.end()
		a := f.begin()
		f.service.deliver(3)
		synctest.Wait()
		if got := f.takeIDs(a, 10); len(got) != 3 {
			t.Errorf("emitted %v", got)
		}
	})
}

func TestWindow_RemembersSoManyAndNoMore(t *testing.T) {
	w := newWindow()
	now := time.Now()
	for i := range 2*windowSize + 10 {
		w.add(fmt.Sprint(i), now)
	}
	if w.has(fmt.Sprint(windowSize+9), now) || !w.has(fmt.Sprint(windowSize+10), now) {
		t.Error("not the last ones are remembered")
	}
	if len(w.known) != windowSize || len(w.order) > 2*windowSize {
		t.Errorf("%d are known, %d in order", len(w.known), len(w.order))
	}
	if w.has(fmt.Sprint(2*windowSize), now.Add(windowTime)) || len(w.known) != 0 || len(w.order) != 0 {
		t.Errorf("%d are known after ten minutes", len(w.known))
	}
}
