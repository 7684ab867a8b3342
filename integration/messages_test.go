package integration

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/google/go-cmp/cmp"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// edgeMessages are messages at the edges of what the service takes.
func edgeMessages() map[string]*message.Message {
	hundred := make(map[string]string, 100)
	for i := range 99 {
		hundred[fmt.Sprintf("key%d", i)] = strings.Repeat("v", i)
	}
	hundred[strings.Repeat("k", 256)] = strings.Repeat("v", 1024)
	// A request spells the topic: 2 bytes and the name. The framing of a message
	// of 10 MB takes 5, that of its data 5.
	largest := options.MaxRequestBytes - len(outTopic) - 2 - 5 - 5
	return map[string]*message.Message{
		"one byte":                     {Data: []byte{0}},
		"no data and an attribute":     {Attributes: map[string]string{"k": ""}},
		"the largest that fits":        {Data: bytes.Repeat([]byte("x"), largest)},
		"a hundred attributes":         {Data: []byte("x"), Attributes: hundred},
		"data that is not valid UTF-8": {Data: []byte{0xff, 0x00, 0xc5, 'z', 0x80}},
		"attributes beyond ASCII":      {Data: []byte("x"), Attributes: map[string]string{"näme": "wärde 語 😀"}},
		"trace context":                {Data: []byte("x"), Attributes: map[string]string{"googclient_traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
	}
}

// published is what of a message the publisher decides, by its content.
func published(messages []*message.Message) []string {
	var out []string
	for _, m := range messages {
		var b strings.Builder
		fmt.Fprintf(&b, "%d bytes %x", len(m.Data), m.Data[:min(len(m.Data), 20)])
		for _, k := range slices.Sorted(maps.Keys(m.Attributes)) {
			fmt.Fprintf(&b, " %q=%q", k, m.Attributes[k])
		}
		out = append(out, b.String())
	}
	slices.Sort(out)
	return out
}

func TestPrism_MessagesAtTheEdges(t *testing.T) {
	for name, m := range edgeMessages() {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			if _, err := srv.Publish(inTopic, m); err != nil {
				t.Fatal(err)
			}
			must(t, relayOf(srv, options.Limit{MaxMessages: 1}).run(within(t, 20*time.Second)))
			got := srv.Messages(outTopic)
			if len(got) != 1 || !bytes.Equal(got[0].Data, m.Data) || !maps.Equal(got[0].Attributes, m.Attributes) {
				t.Fatalf("%d messages arrived:\n%s", len(got), cmp.Diff(published([]*message.Message{m}), published(got)))
			}
			if n := srv.Stats(inSub).Acknowledged; n != 1 {
				t.Errorf("%d were acknowledged", n)
			}
			expectSettled(t, srv, inSub)
		})
	}
}

func TestPrism_MessagesAtTheEdgesTogether(t *testing.T) {
	srv := newServer(t)
	messages := slices.Collect(maps.Values(edgeMessages()))
	messages = append(messages, messages...)
	if _, err := srv.Publish(inTopic, messages...); err != nil {
		t.Fatal(err)
	}
	must(t, relayOf(srv, options.Limit{MaxMessages: int64(len(messages))}).run(within(t, 20*time.Second)))
	if diff := cmp.Diff(published(messages), published(srv.Messages(outTopic))); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	expectSettled(t, srv, inSub)
}

func TestPrism_NoMessageAtAll(t *testing.T) {
	srv := newServer(t)
	began := time.Now()
	must(t, relayOf(srv, options.Limit{StopWhenIdle: 200 * time.Millisecond}).run(within(t, 20*time.Second)))
	if took := time.Since(began); took > 10*time.Second && !raceDetector {
		t.Errorf("an empty subscription took %v", took)
	}
	if n := srv.Calls("Publish"); n != 0 {
		t.Errorf("%d publish calls", n)
	}
	expectSettled(t, srv, inSub)
}

func TestPrism_StopWhenIdleReadsEverythingFirst(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 15_000)
	must(t, relayOf(srv, options.Limit{StopWhenIdle: stretched(500 * time.Millisecond)}).run(within(t, 40*time.Second)))
	expectArrived(t, srv, true)
	if s := srv.Stats(inSub); s.Acknowledged != 15_000 {
		t.Errorf("not everything is acknowledged: %+v", s)
	}
	expectSettled(t, srv, inSub)
}

func TestPrism_MaxDurationEndsABusyRead(t *testing.T) {
	srv := newServer(t)
	must(t, srv.Preload(inTopic, 200_000, &message.Message{Data: []byte("x")}))
	srv.Delay("Publish", 20*time.Millisecond)
	must(t, relayOf(srv, options.Limit{MaxDuration: stretched(500 * time.Millisecond)}).run(within(t, 40*time.Second)))
	s := srv.Stats(inSub)
	if s.Acknowledged != srv.Published(outTopic) || s.Acknowledged == 0 || s.Acknowledged+s.Backlog != 200_000 {
		t.Errorf("%d were published: %+v", srv.Published(outTopic), s)
	}
	expectSettled(t, srv, inSub)
}

// Each subscription of a topic has each message.
func TestPrism_SeveralSubscriptionsOfOneTopic(t *testing.T) {
	srv := newServer(t)
	subs := []string{inSub}
	for i := range 4 {
		sub := fmt.Sprintf("%s-%d", inSub, i)
		srv.MustCreateSubscription(sub, inTopic)
		subs = append(subs, sub)
	}
	const n = 1000
	publish(t, srv, inTopic, 0, n)
	r := relayOf(srv, options.Limit{MaxMessages: int64(n * len(subs))})
	r.source.Subscriptions = source.From(subs...)
	must(t, r.run(within(t, 30*time.Second)))
	for d, times := range data(srv.Messages(outTopic)) {
		if times != len(subs) {
			t.Errorf("%s was published %d times, not once for each of %d subscriptions", d, times, len(subs))
		}
	}
	for _, sub := range subs {
		if s := srv.Stats(sub); s.Acknowledged != n || s.Redelivered != 0 {
			t.Errorf("%s: %+v", sub, s)
		}
		expectSettled(t, srv, sub)
	}
}

func TestPrism_SplitsShareASubscription(t *testing.T) {
	for name, run := range rules {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			const n = 20_000
			publish(t, srv, inTopic, 0, n)
			r := relayOf(srv, options.Limit{StopWhenIdle: stretched(time.Second)})
			r.source.Splits = 4
			must(t, run(r, within(t, 40*time.Second)))
			expectArrived(t, srv, true)
			if s := srv.Stats(inSub); s.Acknowledged != n || s.Redelivered != 0 || s.StreamsOpened != 4 {
				t.Errorf("want everything acknowledged once, over four streams: %+v", s)
			}
			expectSettled(t, srv, inSub)
		})
	}
}

// Named twice, a subscription would be read by two readers that share its
// messages, which nobody means.
func TestRead_TheSameSubscriptionTwiceIsRefused(t *testing.T) {
	p, s := beam.NewPipelineWithRoot()
	_ = p
	_, err := source.TryRead(s, source.Config{Subscriptions: source.From(inSub, inSub)}, source.Message)
	if err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("error %v", err)
	}
}

// Ids at the limits of length, with every special character there is.
func TestPrism_C24_IdsAtTheEdges(t *testing.T) {
	special := "a-b_c.d~e%f+"
	for name, id := range map[string]string{
		"3 characters":   "abc",
		"255 characters": strings.Repeat("a", 255),
		"special":        special,
		"255 special":    (special + strings.Repeat("%+~-._", 50))[:255],
	} {
		t.Run(name, func(t *testing.T) {
			srv := pubsubtest.New(t)
			in, sub, out := "projects/ex.com:p/topics/"+id, "projects/other-project/subscriptions/"+id, "projects/p1/topics/"+id
			srv.MustCreateTopic(in)
			srv.MustCreateTopic(out)
			srv.MustCreateSubscription(sub, in)
			publish(t, srv, in, 0, 10)
			r := relayOf(srv, options.Limit{MaxMessages: 10})
			r.source.Subscriptions = source.From(sub)
			r.sink.Topic = out
			must(t, r.run(within(t, 20*time.Second)))
			if n := srv.Published(out); n != 10 {
				t.Errorf("%d messages arrived", n)
			}
			expectSettled(t, srv, sub)
		})
	}
}
