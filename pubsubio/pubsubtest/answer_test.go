package pubsubtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func (f fixture) tryPublish(ctx context.Context, topic string) codes.Code {
	_, err := f.Publisher.Publish(ctx, &pubsubpb.PublishRequest{Topic: topic, Messages: data("x")})
	return status.Code(err)
}

func TestAnswer_OptionsChooseTheCalls(t *testing.T) {
	unavailable := status.Error(codes.Unavailable, "later")
	const ok, no = codes.OK, codes.Unavailable
	for name, c := range map[string]struct {
		opts []pubsubtest.AnswerOption
		want [4]codes.Code
	}{
		"all calls":      {nil, [4]codes.Code{no, no, no, no}},
		"two calls":      {[]pubsubtest.AnswerOption{pubsubtest.Times(2)}, [4]codes.Code{no, no, ok, ok}},
		"no call":        {[]pubsubtest.AnswerOption{pubsubtest.Times(0)}, [4]codes.Code{ok, ok, ok, ok}},
		"after one":      {[]pubsubtest.AnswerOption{pubsubtest.Skip(1)}, [4]codes.Code{ok, no, no, no}},
		"the third":      {[]pubsubtest.AnswerOption{pubsubtest.Skip(2), pubsubtest.Times(1)}, [4]codes.Code{ok, ok, no, ok}},
		"of the topic":   {[]pubsubtest.AnswerOption{pubsubtest.For(topicA), pubsubtest.Times(1)}, [4]codes.Code{no, ok, ok, ok}},
		"of another one": {[]pubsubtest.AnswerOption{pubsubtest.For(topicB)}, [4]codes.Code{ok, ok, ok, ok}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.srv.Answer("Publish", unavailable, c.opts...)
			for i, want := range c.want {
				if got := f.tryPublish(t.Context(), topicA); got != want {
					t.Errorf("call %d: %v, want %v", i, got, want)
				}
			}
			f.srv.Answer("Publish", nil)
			if got := f.tryPublish(t.Context(), topicA); got != ok {
				t.Errorf("when cleared: %v", got)
			}
			if n := f.srv.Calls("Publish"); n != 5 {
				t.Errorf("%d calls, want 5", n)
			}
		})
	}
}

// Case C37: the request is stored and its answer lost.
func TestAnswer_AfterEffectIsALostAnswer(t *testing.T) {
	f := newFixture(t)
	f.srv.Answer("Publish", status.Error(codes.DeadlineExceeded, "lost"), pubsubtest.AfterEffect(), pubsubtest.Times(1))
	if got := f.tryPublish(t.Context(), topicA); got != codes.DeadlineExceeded {
		t.Errorf("answered %v", got)
	}
	if n := f.srv.Published(topicA); n != 1 {
		t.Errorf("%d messages stored, want 1", n)
	}
}

func TestAnswer_StreamingPullIsRefusedWhenOpened(t *testing.T) {
	f := newFixture(t)
	f.srv.Answer("StreamingPull", status.Error(codes.PermissionDenied, "no"))
	_, err := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA}).Recv()
	wantCode(t, "open", err, codes.PermissionDenied)
	if s := f.srv.Stats(subA); s.StreamsOpened != 0 {
		t.Errorf("stats %+v", s)
	}
	events := f.srv.Events()
	last := events[len(events)-1]
	if last.Kind != pubsubtest.Refused || last.Method != "StreamingPull" || last.Code != codes.PermissionDenied || last.Subscription != subA {
		t.Errorf("last event %+v", last)
	}
}

func TestAnswer_MistakesPanic(t *testing.T) {
	srv := pubsubtest.New(t)
	for name, f := range map[string]func(){
		"no such method": func() { srv.Answer("publish", errors.New("x")) },
		"status OK":      func() { srv.Answer("Publish", okError{}) },
		"no such call":   func() { srv.Calls("Pubish") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// okError is an error whose status is OK.
type okError struct{}

func (okError) Error() string              { return "ok" }
func (okError) GRPCStatus() *status.Status { return status.New(codes.OK, "") }

func TestDelay_HoldsTheEffectBack(t *testing.T) {
	f := newFixture(t)
	const delay = 50 * time.Millisecond
	f.srv.Delay("Publish", delay)
	start := time.Now()
	if got := f.tryPublish(t.Context(), topicA); got != codes.OK {
		t.Fatal(got)
	}
	if took := time.Since(start); took < delay {
		t.Errorf("answered after %v", took)
	}
	f.srv.Delay("Publish", time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), delay)
	defer cancel()
	if got := f.tryPublish(ctx, topicA); got != codes.DeadlineExceeded {
		t.Errorf("a call that gave up: %v", got)
	}
	if n := f.srv.Published(topicA); n != 1 {
		t.Errorf("%d messages stored, want 1", n)
	}
}

func TestEvents_TellTheStory(t *testing.T) {
	f := newFixture(t)
	ids := f.Publish(topicA, &pubsubpb.PubsubMessage{Data: []byte("x"), Attributes: map[string]string{"src": "7"}})
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA})
	f.Extend(subA, 0, ackIDs(f.Receive(stream, 1))...)
	second := f.Receive(stream, 1)
	f.Extend(subA, 30, ackIDs(second)...)
	f.Acknowledge(subA, ackIDs(second)...)
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := f.srv.AwaitEvent(ctx, func(e pubsubtest.Event) bool { return e.Kind == pubsubtest.StreamClose }); err != nil {
		t.Fatal(err)
	}
	type step struct {
		Kind    pubsubtest.Kind
		Attempt int
		Stream  uint64
		Seconds int
	}
	var got []step
	for i, e := range f.srv.Events() {
		got = append(got, step{e.Kind, e.Attempt, e.Stream, e.Seconds})
		if e.Seq != uint64(i+1) || e.Time.IsZero() {
			t.Errorf("event %d: %+v", i, e)
		}
		if m := e.Message(); m != nil && (m.ID != ids[0] || e.MessageID != ids[0] || m.Attributes["src"] != "7") {
			t.Errorf("%v is about %+v", e.Kind, m)
		}
	}
	want := []step{
		{pubsubtest.Publish, 0, 0, 0},
		{pubsubtest.StreamOpen, 0, 1, 0},
		{pubsubtest.Deliver, 1, 1, 0},
		{pubsubtest.Return, 1, 0, 0},
		{pubsubtest.Deliver, 2, 1, 0},
		{pubsubtest.Extend, 2, 0, 30},
		{pubsubtest.Acknowledge, 2, 0, 0},
		{pubsubtest.StreamClose, 0, 1, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestEvents_KeepTheLatest(t *testing.T) {
	f := newFixture(t, func(c *pubsubtest.Config) { c.Events, c.KeepPublished = 3, 2 })
	f.Publish(topicA, data("1", "2", "3", "4", "5")...)
	events := f.srv.Events()
	if len(events) != 3 || events[0].Seq != 3 || f.srv.EventsDropped() != 2 {
		t.Errorf("events %+v, %d dropped", events, f.srv.EventsDropped())
	}
	if msgs := f.srv.Messages(topicA); len(msgs) != 2 || string(msgs[0].Data) != "4" || string(msgs[1].Data) != "5" {
		t.Errorf("messages %v", msgs)
	}
	off := newFixture(t, func(c *pubsubtest.Config) { c.Events, c.KeepPublished = 0, 0 })
	off.Publish(topicA, data("1")...)
	if len(off.srv.Events()) != 0 || len(off.srv.Messages(topicA)) != 0 || off.srv.EventsDropped() != 0 || off.srv.Published(topicA) != 1 {
		t.Error("a server that keeps nothing kept something, or did not count")
	}
}

func TestPublish_DirectlyKeepsThePublishTime(t *testing.T) {
	f := newFixture(t)
	before := time.Date(1969, 12, 31, 23, 59, 59, 5, time.UTC)
	ids, err := f.srv.Publish(topicA, &message.Message{Data: []byte("old"), PublishTime: before}, &message.Message{Data: []byte("new")})
	if err != nil {
		t.Fatal(err)
	}
	got := f.Pull(subA, 2, true)
	if p := got[0].GetMessage(); !p.GetPublishTime().AsTime().Equal(before) || p.GetMessageId() != ids[0] {
		t.Errorf("got %v", p)
	}
	if age := time.Since(got[1].GetMessage().GetPublishTime().AsTime()); age > time.Minute {
		t.Errorf("the other is %v old", age)
	}
	if m := f.srv.Messages(topicA)[0]; m.ID != ids[0] || !m.PublishTime.Equal(before) {
		t.Errorf("message %+v", m)
	}
}

func TestAwait_EndsWithItsContext(t *testing.T) {
	f := newFixture(t)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := f.srv.Await(ctx, subA, func(s pubsubtest.Stats) bool { return s.Acknowledged > 0 }); !errors.Is(err, cause) {
		t.Errorf("await: %v", err)
	}
	if err := f.srv.AwaitPublished(ctx, topicA, 1); !errors.Is(err, cause) {
		t.Errorf("await published: %v", err)
	}
	if err := f.srv.AwaitEvent(ctx, func(pubsubtest.Event) bool { return false }); !errors.Is(err, cause) {
		t.Errorf("await event: %v", err)
	}
	if err := f.srv.AwaitPublished(t.Context(), topicA, 0); err != nil {
		t.Error(err)
	}
}
