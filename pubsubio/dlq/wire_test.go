package dlq

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// wireMessages are messages with everything that the wire form has.
func wireMessages() map[string]*message.Message {
	return map[string]*message.Message{
		"empty":       {},
		"data":        {Data: []byte{0, 0xff, 'x'}},
		"attributes":  {Attributes: map[string]string{"a": "1", "": "", "näme": strings.Repeat("語", 5000)}},
		"everything":  {ID: "12", Data: []byte("d"), Attributes: map[string]string{"k": "v"}, OrderingKey: "key", PublishTime: time.Unix(1_700_000_000, 7).UTC()},
		"the epoch":   {PublishTime: time.Unix(0, 0).UTC()},
		"before it":   {PublishTime: time.Unix(-62135596799, 999_999_999).UTC()},
		"large":       {Data: make([]byte, 100_000), OrderingKey: strings.Repeat("k", 1024)},
		"a key alone": {OrderingKey: "k"},
	}
}

// generated is m as the generated code has it.
func generated(m *message.Message) *pubsubpb.PubsubMessage {
	pb := m.PublishProto()
	pb.MessageId = m.ID
	if !m.PublishTime.IsZero() {
		pb.PublishTime = timestamppb.New(m.PublishTime)
	}
	return pb
}

// Any client of Pub/Sub can parse the data of an envelope.
func TestMarshal_IsTheWireFormOfPubsubMessage(t *testing.T) {
	for name, m := range wireMessages() {
		var pb pubsubpb.PubsubMessage
		if err := proto.Unmarshal(marshal(m), &pb); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := generated(m); !proto.Equal(&pb, want) {
			t.Errorf("%s: got %v, want %v", name, &pb, want)
		}
		if got, want := sizeMessage(&message.Message{Data: m.Data, Attributes: m.Attributes}), proto.Size(&pubsubpb.PubsubMessage{Data: m.Data, Attributes: m.Attributes}); got != want {
			t.Errorf("%s: size %d, want %d", name, got, want)
		}
	}
}

func TestUnmarshal_ReadsWhatOthersWrite(t *testing.T) {
	for name, m := range wireMessages() {
		b, err := proto.Marshal(generated(m))
		if err != nil {
			t.Fatal(err)
		}
		b = protowire.AppendTag(b, 99, protowire.Fixed64Type) // one of a later version
		b = protowire.AppendFixed64(b, 1)
		b = protowire.AppendTag(b, fieldData, protowire.VarintType) // and one of another type
		b = protowire.AppendVarint(b, 1)
		got, err := unmarshal(b)
		if name == "empty" { // all that it has is unknown
			if !errors.Is(err, errFields) {
				t.Errorf("%s: %v, error %v", name, got, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("%s (-want +got):\n%.500s", name, diff)
		}
	}
}

// Generated code refuses to write, and to read, text that is not valid UTF-8; such a
// message is refused by the sink, and is the one that a dead letter is for.
func TestWire_InvalidUTF8SurvivesWhereGeneratedCodeRefuses(t *testing.T) {
	m := &message.Message{ID: "\xff", Attributes: map[string]string{"a\xc5z": "\x80"}, OrderingKey: "k\xff"}
	if _, err := proto.Marshal(generated(m)); err == nil {
		t.Error("the generated code writes invalid UTF-8")
	}
	b := marshal(m)
	if err := proto.Unmarshal(b, new(pubsubpb.PubsubMessage)); err == nil {
		t.Error("the generated code reads invalid UTF-8")
	}
	got, err := unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnmarshal_RefusesWhatIsDamaged(t *testing.T) {
	whole := marshal(&message.Message{Data: []byte("data"), Attributes: map[string]string{"key": "value"}, PublishTime: time.Unix(1_700_000_000, 1)})
	for n := range whole {
		m, err := unmarshal(whole[:n])
		var pb pubsubpb.PubsubMessage
		if refused := proto.Unmarshal(whole[:n], &pb) != nil; refused != (err != nil) {
			t.Errorf("%d of %d bytes: %v, %v; the generated code: %v", n, len(whole), m, err, refused)
		}
	}
	for name, timestamp := range map[string][]byte{
		"nanoseconds of a second": protowire.AppendVarint(protowire.AppendTag(nil, fieldNanos, protowire.VarintType), 1_000_000_000),
		"no time":                 protowire.AppendVarint(protowire.AppendTag(nil, fieldSeconds, protowire.VarintType), 1<<62),
		"the least number":        protowire.AppendVarint(protowire.AppendTag(nil, fieldSeconds, protowire.VarintType), 1<<63),
		"cut":                     {0x08},
	} {
		if m, err := unmarshal(appendField(nil, fieldPublishTime, timestamp)); err == nil {
			t.Errorf("%s: %v", name, m)
		}
	}
}
