package pubsubtest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

var unavailable = pubsubtest.Fail(status.Error(codes.Unavailable, "later"))

// limited is a context that only a failing test sees the end of.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestOrder_RulesChooseTheCalls(t *testing.T) {
	const ok, no = codes.OK, codes.Unavailable
	for name, c := range map[string]struct {
		rule pubsubtest.Rule
		want []codes.Code
	}{
		"all":                   {pubsubtest.Rule{}, []codes.Code{no, no, no}},
		"of the method":         {pubsubtest.Rule{Method: "Publish"}, []codes.Code{no, no, no}},
		"of another method":     {pubsubtest.Rule{Method: "GetTopic"}, []codes.Code{ok, ok, ok}},
		"of the topic":          {pubsubtest.Rule{Topic: topicA}, []codes.Code{no, no, no}},
		"of another topic":      {pubsubtest.Rule{Topic: topicB}, []codes.Code{ok, ok, ok}},
		"of a subscription":     {pubsubtest.Rule{Subscription: subA}, []codes.Code{ok, ok, ok}},
		"the first":             {pubsubtest.Rule{Times: 1}, []codes.Code{no, ok, ok}},
		"the second":            {pubsubtest.Rule{Skip: 1, Times: 1}, []codes.Code{ok, no, ok}},
		"every second":          {pubsubtest.Rule{Every: 2}, []codes.Code{ok, no, ok, no, ok}},
		"every second after 1":  {pubsubtest.Rule{Skip: 1, Every: 2}, []codes.Code{ok, ok, no, ok, no}},
		"every second, 1 time":  {pubsubtest.Rule{Every: 2, Times: 1}, []codes.Code{ok, no, ok, ok, ok}},
		"of the ordering key":   {pubsubtest.Rule{OrderingKey: "k"}, []codes.Code{no, no, no}},
		"of another key":        {pubsubtest.Rule{OrderingKey: "l"}, []codes.Code{ok, ok, ok}},
		"with an attribute":     {pubsubtest.Rule{Attribute: "poison"}, []codes.Code{no, no, no}},
		"without it":            {pubsubtest.Rule{Attribute: "Poison"}, []codes.Code{ok, ok, ok}},
		"with a message":        {pubsubtest.Rule{Message: hasData("x")}, []codes.Code{no, no, no}},
		"without it, the first": {pubsubtest.Rule{Message: hasData("y"), Times: 1}, []codes.Code{ok, ok, ok}},
		"all of one message":    {pubsubtest.Rule{Attribute: "poison", Message: hasData("z")}, []codes.Code{ok, ok, ok}},
		"always, by chance":     {pubsubtest.Rule{Probability: 1}, []codes.Code{no, no, no}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			o := f.srv.Order(c.rule, unavailable)
			fired := int64(0)
			for i, want := range c.want {
				_, err := f.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topicA, Messages: []*pubsubpb.PubsubMessage{
					{Data: []byte("z"), OrderingKey: "k"},
					{Data: []byte("x"), OrderingKey: "k", Attributes: map[string]string{"poison": ""}},
				}})
				if got := status.Code(err); got != want {
					t.Errorf("call %d: %v, want %v", i, got, want)
				}
				if want == no {
					fired++
				}
			}
			if n := o.Fired(); n != fired {
				t.Errorf("fired %d times, want %d", n, fired)
			}
			o.Remove()
			o.Remove()
			if got := f.tryPublish(t.Context(), topicA); got != ok {
				t.Errorf("when removed: %v", got)
			}
		})
	}
}

func hasData(text string) func(*message.Message) bool {
	return func(m *message.Message) bool { return string(m.Data) == text && m.ID == "" && m.PublishTime.IsZero() }
}

// What a seed draws can be told beforehand.
func TestOrder_ProbabilityIsTheSeeds(t *testing.T) {
	f := newFixture(t)
	o := f.srv.Order(pubsubtest.Rule{Method: "GetTopic", Probability: 0.3, Seed: 7}, unavailable)
	draw := rand.New(rand.NewPCG(7, 0))
	for i := range 100 {
		want := codes.OK
		if draw.Float64() < 0.3 {
			want = codes.Unavailable
		}
		_, err := f.Publisher.GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: topicA})
		if status.Code(err) != want {
			t.Fatalf("call %d: %v, want %v", i, err, want)
		}
	}
	if n := o.Fired(); n < 15 || n > 45 {
		t.Errorf("fired %d times of 100", n)
	}
}

// Of two orders that end a call, the first decides, and the second keeps its
// calls for later; waits add up whichever was given first.
func TestOrder_SeveralCompose(t *testing.T) {
	f := newFixture(t)
	const wait = 30 * time.Millisecond
	first := f.srv.Order(pubsubtest.Rule{Method: "Publish", Times: 1}, unavailable)
	second := f.srv.Order(pubsubtest.Rule{Method: "Publish", Times: 1}, pubsubtest.Wait(0), pubsubtest.Fail(status.Error(codes.Aborted, "no")))
	slow := f.srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.Wait(wait))
	slower := f.srv.Order(pubsubtest.Rule{}, pubsubtest.WaitBetween(wait, 2*wait))
	for i, want := range []codes.Code{codes.Unavailable, codes.Aborted, codes.OK} {
		start := time.Now()
		if got := f.tryPublish(t.Context(), topicA); got != want {
			t.Errorf("call %d: %v, want %v", i, got, want)
		}
		if took := time.Since(start); took < 2*wait {
			t.Errorf("call %d took %v, want at least %v", i, took, 2*wait)
		}
	}
	got := []int64{first.Fired(), second.Fired(), slow.Fired(), slower.Fired()}
	if want := []int64{1, 1, 3, 3}; !slices.Equal(got, want) {
		t.Errorf("fired %v, want %v", got, want)
	}
}

// Cases C29 and C30: what one message is, decides on its request.
func TestOrder_PoisonFailsItsRequestOnly(t *testing.T) {
	f := newFixture(t)
	poison := f.srv.Order(pubsubtest.Rule{Method: "Publish", Attribute: "poison"},
		pubsubtest.Fail(status.Error(codes.InvalidArgument, "poison")))
	bad := &pubsubpb.PubsubMessage{Attributes: map[string]string{"poison": "yes"}}
	_, err := f.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topicA, Messages: append(data("a", "b"), bad)})
	wantCode(t, "with poison", err, codes.InvalidArgument)
	_, err = f.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topicA, Messages: data("a", "b")})
	wantCode(t, "without", err, codes.OK)
	if n, stored := poison.Fired(), f.srv.Published(topicA); n != 1 || stored != 2 {
		t.Errorf("fired %d times, %d messages stored", n, stored)
	}
}

// Case C37: stored, and the answer lost in one way or another.
func TestOrder_CarryOutStoresAndLosesTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		action pubsubtest.Action
		want   codes.Code
	}{
		"a status":            {pubsubtest.Fail(status.Error(codes.DeadlineExceeded, "lost")), codes.DeadlineExceeded},
		"no answer":           {pubsubtest.NeverAnswer(), codes.DeadlineExceeded},
		"a broken connection": {pubsubtest.Disconnect(), codes.Unavailable},
		"a late answer":       {pubsubtest.Wait(time.Hour), codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.srv.Order(pubsubtest.Rule{Method: "Publish", Times: 1}, pubsubtest.CarryOut(), c.action)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if got := f.tryPublish(ctx, topicA); got != c.want {
				t.Errorf("answered %v, want %v", got, c.want)
			}
			if n := f.srv.Published(topicA); n != 1 {
				t.Errorf("%d messages stored, want 1", n)
			}
		})
	}
}

// Case C37: stored, and the answer lost once for each request.
func TestOrder_FirstAttemptOfEachRequest(t *testing.T) {
	f := newFixture(t)
	lost := f.srv.Order(pubsubtest.Rule{FirstAttempt: true}, pubsubtest.CarryOut(), unavailable)
	for _, text := range []string{"a", "b"} {
		for i, want := range []codes.Code{codes.Unavailable, codes.OK, codes.OK} {
			_, err := f.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topicA, Messages: []*pubsubpb.PubsubMessage{
				{Data: []byte("x")}, {Data: []byte(text), Attributes: attributes(5)}, // which Go encodes in any order
			}})
			if got := status.Code(err); got != want {
				t.Errorf("attempt %d of %s: %v, want %v", i, text, got, want)
			}
		}
	}
	if n, stored := lost.Fired(), f.srv.Published(topicA); n != 2 || stored != 12 {
		t.Errorf("fired %d times, %d messages stored", n, stored)
	}
}

func TestOrder_WithoutCarryOutNothingIsStored(t *testing.T) {
	for name, action := range map[string]pubsubtest.Action{
		"a status":            unavailable,
		"no answer":           pubsubtest.NeverAnswer(),
		"a broken connection": pubsubtest.Disconnect(),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.srv.Order(pubsubtest.Rule{Method: "Publish", Times: 1}, action)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if got := f.tryPublish(ctx, topicA); got == codes.OK {
				t.Error("answered OK")
			}
			if n := f.srv.Published(topicA); n != 0 {
				t.Errorf("%d messages stored, want 0", n)
			}
			if _, err := f.Publisher.Publish(limited(t), &pubsubpb.PublishRequest{Topic: topicA, Messages: data("x")}); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// A test can hold a call back, know that it has come, and let it go.
func TestOrder_WaitForHoldsACall(t *testing.T) {
	f := newFixture(t)
	gate := make(chan struct{})
	held := f.srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.WaitFor(gate))
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if got := f.tryPublish(limited(t), topicA); got != codes.OK {
			t.Errorf("answered %v", got)
		}
	})
	if err := held.AwaitFired(limited(t), 1); err != nil {
		t.Fatal(err)
	}
	if n := f.srv.Published(topicA); n != 0 {
		t.Errorf("%d messages stored of a call that is held", n)
	}
	close(gate)
	if err := f.srv.AwaitPublished(limited(t), topicA, 1); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := held.AwaitFired(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("await: %v", err)
	}
}

// A server that stops lets go of the calls that it never answers.
func TestOrder_NeverAnswerEndsWithTheServer(t *testing.T) {
	f := newFixture(t)
	never := f.srv.Order(pubsubtest.Rule{}, pubsubtest.NeverAnswer())
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if got := f.tryPublish(limited(t), topicA); got != codes.Unavailable {
			t.Errorf("answered %v", got)
		}
	})
	if err := never.AwaitFired(limited(t), 1); err != nil {
		t.Fatal(err)
	}
	f.srv.Stop()
}

func TestOrder_AppliesToStreamsAndAcknowledgements(t *testing.T) {
	f := newFixture(t)
	f.Publish(topicA, data("x")...)
	got := f.Pull(subA, 1, true)
	acks := f.srv.Order(pubsubtest.Rule{Method: "Acknowledge", Subscription: subA}, pubsubtest.CarryOut(), unavailable)
	streams := f.srv.Order(pubsubtest.Rule{Method: "StreamingPull", Subscription: subA, Times: 1}, pubsubtest.Disconnect())
	_, err := f.Subscriber.Acknowledge(t.Context(), &pubsubpb.AcknowledgeRequest{Subscription: subA, AckIds: ackIDs(got)})
	wantCode(t, "acknowledge", err, codes.Unavailable)
	if s := f.srv.Stats(subA); s.Acknowledged != 1 {
		t.Errorf("stats %+v", s)
	}
	_, err = f.OpenStream(openRequest).Recv()
	wantCode(t, "stream", err, codes.Unavailable)
	if acks.Fired() != 1 || streams.Fired() != 1 {
		t.Errorf("fired %d and %d times, want 1 and 1", acks.Fired(), streams.Fired())
	}
}

func TestOrder_MistakesPanic(t *testing.T) {
	srv := pubsubtest.New(t)
	always := pubsubtest.Rule{Method: "Publish"}
	for name, f := range map[string]func(){
		"no such method":         func() { srv.Order(pubsubtest.Rule{Method: "publish"}, unavailable) },
		"no action":              func() { srv.Order(always) },
		"two endings":            func() { srv.Order(always, unavailable, pubsubtest.Disconnect()) },
		"fail with nil":          func() { pubsubtest.Fail(nil) },
		"fail with OK":           func() { pubsubtest.Fail(okError{}) },
		"a negative count":       func() { srv.Order(pubsubtest.Rule{Times: -1}, unavailable) },
		"more than certain":      func() { srv.Order(pubsubtest.Rule{Probability: 1.1}, unavailable) },
		"messages of no publish": func() { srv.Order(pubsubtest.Rule{Method: "Pull", Attribute: "k"}, unavailable) },
		"topic of an ack":        func() { srv.Order(pubsubtest.Rule{Method: "Acknowledge", Topic: topicA}, unavailable) },
		"subscription of topic":  func() { srv.Order(pubsubtest.Rule{Method: "Publish", Subscription: subA}, unavailable) },
		"an empty range":         func() { pubsubtest.WaitBetween(2, 1) },
		"denied method":          func() { srv.Deny("pubsub.topics.create") },
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "pubsubtest: ") {
					t.Errorf("%s: panic %q", name, text)
				}
			}()
			f()
		}()
	}
}
