package pubsubtest_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// publishAged publishes messages that are so many minutes old, their age as data.
func (f fixture) publishAged(t *testing.T, key string, minutes ...int) {
	t.Helper()
	for _, n := range minutes {
		m := &message.Message{Data: []byte(strconv.Itoa(n)), OrderingKey: key, PublishTime: time.Now().Add(-time.Duration(n) * time.Minute)}
		if _, err := f.srv.Publish(topicA, m); err != nil {
			t.Fatal(err)
		}
	}
}

// seekBack seeks to so many minutes ago.
func (f fixture) seekBack(t *testing.T, minutes int) {
	t.Helper()
	_, err := f.Subscriber.Seek(t.Context(), &pubsubpb.SeekRequest{
		Subscription: subA, Target: &pubsubpb.SeekRequest_Time{Time: timestamppb.New(time.Now().Add(-time.Duration(minutes) * time.Minute))},
	})
	wantCode(t, "seek", err, codes.OK)
}

func (f fixture) wantDrained(t *testing.T, what string, want ...string) {
	t.Helper()
	var got []string
	for _, m := range f.Drain(subA) {
		got = append(got, string(m.GetData()))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestSeek_ForwardAcknowledges(t *testing.T) {
	f := newFixture(t)
	f.publishAged(t, "", 50, 40, 30, 20, 10)
	held := f.Pull(subA, 2, true)
	f.Extend(subA, 0, held[0].GetAckId())
	f.seekBack(t, 35) // one returned and one leased go
	if s := f.srv.Stats(subA); s.Purged != 2 || s.Outstanding != 0 || s.Backlog != 3 {
		t.Errorf("stats %+v", s)
	}
	f.Acknowledge(subA, ackIDs(held)...) // says nothing any more
	f.wantDrained(t, "after the seek", "30", "20", "10")
	f.publishAged(t, "", 5)
	f.seekBack(t, -60) // to the future: all is acknowledged
	f.publishAged(t, "", 1)
	f.wantDrained(t, "after the purge", "1")
	if err := f.srv.Seek(subA, time.Time{}); err != nil {
		t.Error(err)
	}
	f.wantDrained(t, "nothing is retained")
}

func TestSeek_BackRedeliversWhatIsRetained(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topicA)
	srv.MustCreateSubscription(subA, topicA, pubsubtest.RetainAcked())
	f := fixture{Client: newClient(t, srv), srv: srv}
	f.publishAged(t, "", 50, 40, 30)
	f.wantDrained(t, "at first", "50", "40", "30")
	f.publishAged(t, "", 20, 10)
	f.seekBack(t, 45)
	f.wantDrained(t, "since the time, in order", "40", "30", "20", "10")
	if s := srv.Stats(subA); s.Restored != 2 {
		t.Errorf("stats %+v", s)
	}
	f.seekBack(t, -60)
	f.seekBack(t, 60)
	f.wantDrained(t, "all", "50", "40", "30", "20", "10")
	f.seekBack(t, 15)
	held := f.Pull(subA, 1, true)
	f.seekBack(t, 60) // what is leased stays leased
	f.wantDrained(t, "all but one", "50", "40", "30", "20")
	f.Acknowledge(subA, ackIDs(held)...)
	f.publishAged(t, "", 8*24*60)
	f.wantDrained(t, "older than the retention", strconv.Itoa(8*24*60))
	f.seekBack(t, 9*24*60)
	f.wantDrained(t, "all in the retention", "50", "40", "30", "20", "10")
}

// A topic's own retention is for all its subscriptions, later ones among them.
func TestSeek_BackIntoTheTopicsRetention(t *testing.T) {
	f := newFixture(t)
	_, err := f.Publisher.UpdateTopic(t.Context(), &pubsubpb.UpdateTopicRequest{
		Topic:      &pubsubpb.Topic{Name: topicA, MessageRetentionDuration: durationpb.New(time.Hour)},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"message_retention_duration"}},
	})
	wantCode(t, "update topic", err, codes.OK)
	f.publishAged(t, "", 70, 50, 40)
	f.wantDrained(t, "at first", "70", "50", "40")
	if err := f.srv.DeleteSubscription(subA); err != nil {
		t.Fatal(err)
	}
	f.CreateSubscription(subA, topicA)
	f.wantDrained(t, "a new subscription")
	f.seekBack(t, 100)
	f.wantDrained(t, "all in the retention", "50", "40")
}

func TestSeek_KeepsTheOrderOfKeys(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topicA)
	srv.MustCreateSubscription(subA, topicA, pubsubtest.Ordered(), pubsubtest.RetainAcked())
	f := fixture{Client: newClient(t, srv), srv: srv}
	f.publishAged(t, "k", 50, 40, 30, 20)
	got := f.Pull(subA, 10, true)
	f.Acknowledge(subA, got[0].GetAckId(), got[2].GetAckId()) // the third stays for the second
	f.seekBack(t, 60)
	f.wantDrained(t, "all", "50", "40", "30", "20")
	f.seekBack(t, 45)
	f.publishAged(t, "k", 10)
	f.wantDrained(t, "since then", "40", "30", "20", "10")
	f.publishAged(t, "k", 5, 1)
	f.Pull(subA, 1, true)
	f.seekBack(t, 3)
	f.wantDrained(t, "what is left", "1")
	if s := srv.Stats(subA); s.Outstanding != 0 || s.Backlog != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestSeek_Refuses(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct {
		req  *pubsubpb.SeekRequest
		want codes.Code
	}{
		"no target":        {&pubsubpb.SeekRequest{Subscription: subA}, codes.InvalidArgument},
		"no such snapshot": {&pubsubpb.SeekRequest{Subscription: subA, Target: &pubsubpb.SeekRequest_Snapshot{Snapshot: "projects/p/snapshots/sss"}}, codes.NotFound},
		"an invalid time":  {&pubsubpb.SeekRequest{Subscription: subA, Target: &pubsubpb.SeekRequest_Time{Time: &timestamppb.Timestamp{Nanos: -1}}}, codes.InvalidArgument},
		"no subscription":  {&pubsubpb.SeekRequest{Subscription: subB, Target: &pubsubpb.SeekRequest_Time{Time: timestamppb.Now()}}, codes.NotFound},
	} {
		_, err := f.Subscriber.Seek(t.Context(), c.req)
		wantCode(t, name, err, c.want)
	}
	wantCode(t, "direct", f.srv.Seek(subB, time.Now()), codes.NotFound)
}
