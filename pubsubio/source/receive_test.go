package source

import (
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func TestSizeOf_IsNearTheSerializedSize(t *testing.T) {
	for name, m := range map[string]*pubsubpb.PubsubMessage{
		"small":      {MessageId: "12345678", Data: []byte("x"), PublishTime: timestamppb.New(epoch)},
		"attributes": {MessageId: "12345678", Attributes: map[string]string{"a": "b", "kind": strings.Repeat("v", 100)}, PublishTime: timestamppb.New(epoch)},
		"large":      {MessageId: "12345678", Data: make([]byte, 9_000_000), PublishTime: timestamppb.New(epoch)},
	} {
		got, want := sizeOf(message.FromProto(m, 0)), int64(proto.Size(m))
		if d := got - want; d < -16 || d > 16 {
			t.Errorf("%s: %d bytes, serialized %d", name, got, want)
		}
	}
}
