package publish

import (
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func drawMessage(t *rapid.T) *message.Message {
	return &message.Message{
		Data:        rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data"),
		Attributes:  rapid.MapOfN(rapid.StringN(0, 20, 150), rapid.StringN(0, 20, 150), 0, 5).Draw(t, "attributes"),
		OrderingKey: rapid.StringN(0, 10, 200).Draw(t, "ordering key"),
	}
}

func TestAppendMessage_IsWhatTheGeneratedCodeWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &pubsubpb.PublishRequest{Topic: topic}
		b := requestHeader(topic)
		for range rapid.IntRange(0, 4).Draw(t, "messages") {
			m := drawMessage(t)
			want.Messages = append(want.Messages, m.PublishProto())
			size := sizeMessage(m)
			if got := proto.Size(m.PublishProto()); size != got {
				t.Fatalf("sizeMessage = %d, proto.Size = %d", size, got)
			}
			b = appendMessage(b, m, size)
		}
		if len(b) != proto.Size(want) {
			t.Fatalf("encoded in %d bytes, proto.Size = %d", len(b), proto.Size(want))
		}
		got := new(pubsubpb.PublishRequest)
		if err := proto.Unmarshal(b, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreEmptyMessages()); diff != "" {
			t.Errorf("decoded (-want +got):\n%s", diff)
		}
	})
}

func TestCountIDs(t *testing.T) {
	b, err := proto.Marshal(&pubsubpb.PublishResponse{MessageIds: []string{"1", "", "33"}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := countIDs(b); n != 3 || err != nil {
		t.Errorf("countIDs = %d, %v", n, err)
	}
	if _, err := countIDs(b[:len(b)-1]); err == nil {
		t.Error("a truncated answer was accepted")
	}
}

func FuzzCountIDs(f *testing.F) {
	f.Add([]byte{10, 1, '7'})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := countIDs(b)
		r := new(pubsubpb.PublishResponse)
		if err == nil && proto.Unmarshal(b, r) == nil && len(r.MessageIds) != n {
			t.Errorf("countIDs = %d, decoded %d", n, len(r.MessageIds))
		}
	})
}
