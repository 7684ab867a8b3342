package pubsubtest

import (
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// What is written by hand must be what the generated code reads.
func TestWire_PullResponseIsWellFormed(t *testing.T) {
	published := &pubsubpb.PubsubMessage{Data: make([]byte, 300), Attributes: map[string]string{"k": "v"}, OrderingKey: "o"}
	wire, err := proto.Marshal(published)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{time.Unix(0, 0), time.Unix(-3, 7), time.Unix(1<<33, 999_999_999)} {
		m := &stored{wire: wire, id: 1234567890123, published: at.UnixNano()}
		r := &pullResponse{
			deliveries:   []delivery{{msg: m, seq: 5, attempt: 300}, {msg: m, seq: 6, attempt: 1}},
			subscription: 9, ackIDs: newAckIDFormat(220), attempts: true,
			properties: (&subscription{ordered: true}).properties(&settings{}),
		}
		b := r.append(nil)
		if len(b) > r.maxSize() {
			t.Errorf("%d bytes, at most %d expected", len(b), r.maxSize())
		}
		got := new(pubsubpb.StreamingPullResponse)
		if err := proto.Unmarshal(b, got); err != nil {
			t.Fatal(err)
		}
		want := &pubsubpb.StreamingPullResponse{
			SubscriptionProperties: &pubsubpb.StreamingPullResponse_SubscriptionProperties{MessageOrderingEnabled: true},
		}
		for _, d := range r.deliveries {
			p := proto.CloneOf(published)
			p.MessageId, p.PublishTime = "1234567890123", timestamppb.New(at)
			want.ReceivedMessages = append(want.ReceivedMessages, &pubsubpb.ReceivedMessage{
				AckId:           string(r.ackIDs.append(nil, ackID{subscription: 9, seq: d.seq, attempt: d.attempt})),
				Message:         p,
				DeliveryAttempt: int32(d.attempt),
			})
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("at %v (-want +got):\n%s", at, diff)
		}
		if diff := cmp.Diff(want.GetReceivedMessages()[0].GetMessage(), m.proto(), protocmp.Transform()); diff != "" {
			t.Errorf("stored at %v (-want +got):\n%s", at, diff)
		}
	}
}

func TestWire_PublishResponseIsWellFormed(t *testing.T) {
	got := new(pubsubpb.PublishResponse)
	if err := proto.Unmarshal((&publishResponse{first: 99, n: 2}).append(nil), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"99", "100"}, got.GetMessageIds()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever the bytes, a request is parsed or refused, and what is parsed agrees
// with the generated code.
func FuzzPublishRequest(f *testing.F) {
	for _, m := range []*pubsubpb.PubsubMessage{
		{Data: []byte("x")}, {}, {Attributes: map[string]string{"googx": "v", "k": "v"}}, {OrderingKey: "k"},
	} {
		b, err := proto.Marshal(&pubsubpb.PublishRequest{Topic: "projects/p/topics/t", Messages: []*pubsubpb.PubsubMessage{m, m}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		want, got := new(pubsubpb.PublishRequest), new(publishRequest)
		malformed, err := proto.Unmarshal(b, want), got.parse(b)
		if malformed != nil || err != nil {
			return // the generated code also reads fields that the server does not
		}
		if got.topic != want.GetTopic() || len(got.messages) != len(want.GetMessages()) {
			t.Fatalf("%d messages for %q, want %v", len(got.messages), got.topic, want)
		}
		if got.refusal != nil {
			return
		}
		for i, m := range want.GetMessages() {
			if len(m.GetData()) == 0 && len(m.GetAttributes()) == 0 {
				t.Fatalf("message %d is empty and not refused", i)
			}
			if len(m.GetOrderingKey()) > maxOrderingKey || m.GetOrderingKey() != want.GetMessages()[0].GetOrderingKey() {
				t.Fatalf("message %d has the ordering key %q", i, m.GetOrderingKey())
			}
			for k, v := range m.GetAttributes() {
				if k == "" || len(k) > maxAttributeKey || len(v) > maxAttributeValue || message.ReservedAttribute(k) {
					t.Fatalf("message %d has the attribute %q=%q", i, k, v)
				}
			}
		}
	})
}
