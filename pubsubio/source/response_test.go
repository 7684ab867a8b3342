package source

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// cut returns b in buffers of up to n bytes, as gRPC has a response in those of its
// frames.
func cut(b []byte, n int) mem.BufferSlice {
	var buffers mem.BufferSlice
	for part := range slices.Chunk(b, n) {
		buffers = append(buffers, mem.SliceBuffer(slices.Clone(part)))
	}
	return buffers
}

// send gives a response to what RecvMsg was called with, over the wire, on which change,
// unless it is nil, may change it.
func send(into any, sent *pubsubpb.StreamingPullResponse, change func([]byte) []byte) error {
	b, err := proto.Marshal(sent)
	if err != nil {
		return err
	}
	if change != nil {
		b = change(b)
	}
	return newPullCodec().Unmarshal(cut(b, 512), into)
}

// arrivals returns messages as they arrive.
func arrivals(t testing.TB, ms ...*pubsubpb.ReceivedMessage) []arrival {
	t.Helper()
	var r response
	if err := send(&r, &pubsubpb.StreamingPullResponse{ReceivedMessages: ms}, nil); err != nil {
		t.Fatal(err)
	}
	return r.messages
}

// arrivedAs is what the generated code makes of a response.
func arrivedAs(r *pubsubpb.StreamingPullResponse) []arrival {
	var as []arrival
	for _, m := range r.GetReceivedMessages() {
		as = append(as, arrival{msg: message.FromProto(m.GetMessage(), int(m.GetDeliveryAttempt())), ackID: m.GetAckId()})
	}
	return as
}

func wantRead(t rapid.TB, r *response, b []byte, size int) {
	t.Helper()
	if err := r.read(cut(b, size)); err != nil {
		t.Fatalf("%d bytes in buffers of %d: %v", len(b), size, err)
	}
	var want pubsubpb.StreamingPullResponse
	if err := proto.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(arrivedAs(&want), r.messages, cmp.AllowUnexported(arrival{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("(-generated code +ours):\n%s", diff)
	}
	if diff := cmp.Diff(want.GetSubscriptionProperties(), r.properties, protocmp.Transform()); diff != "" {
		t.Fatalf("(-generated code +ours):\n%s", diff)
	}
}

// anyMessage may have any field or none, of lengths around those where a length takes
// another byte.
func anyMessage() *rapid.Generator[*pubsubpb.ReceivedMessage] {
	return rapid.Custom(func(t *rapid.T) *pubsubpb.ReceivedMessage {
		text := rapid.OneOf(rapid.String(), rapid.StringN(120, 135, 600))
		m := &pubsubpb.PubsubMessage{
			Data:        rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.SliceOfN(rapid.Byte(), 126, 130)).Draw(t, "data"),
			MessageId:   text.Draw(t, "id"),
			OrderingKey: text.Draw(t, "key"),
			Attributes:  rapid.MapOfN(rapid.String(), text, 0, 5).Draw(t, "attributes"),
		}
		if rapid.Bool().Draw(t, "published") {
			m.PublishTime = &timestamppb.Timestamp{
				Seconds: rapid.Int64Range(math.MinInt32, math.MaxInt32*100).Draw(t, "seconds"),
				Nanos:   rapid.Int32Range(0, 999_999_999).Draw(t, "nanoseconds"),
			}
		}
		return &pubsubpb.ReceivedMessage{AckId: text.Draw(t, "ack id"), DeliveryAttempt: rapid.Int32().Draw(t, "attempt"), Message: m}
	})
}

func anyResponse() *rapid.Generator[*pubsubpb.StreamingPullResponse] {
	return rapid.Custom(func(t *rapid.T) *pubsubpb.StreamingPullResponse {
		r := &pubsubpb.StreamingPullResponse{ReceivedMessages: rapid.SliceOfN(anyMessage(), 0, 5).Draw(t, "messages")}
		if rapid.Bool().Draw(t, "with confirmations") {
			r.AcknowledgeConfirmation = &pubsubpb.StreamingPullResponse_AcknowledgeConfirmation{AckIds: []string{"a", "b"}}
		}
		if rapid.Bool().Draw(t, "with properties") {
			r.SubscriptionProperties = &pubsubpb.StreamingPullResponse_SubscriptionProperties{
				ExactlyOnceDeliveryEnabled: rapid.Bool().Draw(t, "exactly once"), MessageOrderingEnabled: rapid.Bool().Draw(t, "ordering"),
			}
		}
		return r
	})
}

func TestResponse_IsReadAsTheGeneratedCodeReadsIt(t *testing.T) {
	var reused response
	rapid.Check(t, func(t *rapid.T) {
		b, err := proto.Marshal(anyResponse().Draw(t, "response"))
		if err != nil {
			t.Fatal(err)
		}
		wantRead(t, &reused, b, rapid.IntRange(1, 700).Draw(t, "bytes a buffer"))
	})
}

// What the service adds one day must not stop a read; a field that comes twice counts as
// the last, and a message in two parts is one.
func TestResponse_UnknownAndRepeatedFields(t *testing.T) {
	unknown := func(b []byte) []byte {
		b = protowire.AppendVarint(protowire.AppendTag(b, 99, protowire.VarintType), math.MaxUint64)
		b = protowire.AppendFixed32(protowire.AppendTag(b, 100, protowire.Fixed32Type), 1)
		b = protowire.AppendFixed64(protowire.AppendTag(b, 101, protowire.Fixed64Type), 1)
		return protowire.AppendString(protowire.AppendTag(b, protowire.MaxValidNumber, protowire.BytesType), "unknown")
	}
	field := func(b []byte, n protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), value)
	}
	entry := unknown(field(field(unknown(nil), 1, []byte("first")), 1, []byte("key")))
	entry = field(entry, 2, []byte("value"))
	stamp := unknown(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1_700_000_000))
	part := unknown(field(field(nil, 1, []byte("old")), 1, []byte("new")))
	part = field(field(part, 2, entry), 2, field(nil, 1, []byte("no value")))
	part = field(part, 4, stamp)
	// A number where bytes belong is none of the field.
	other := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7)
	other = field(field(other, 3, []byte("id")), 5, []byte("ordering key"))
	received := unknown(field(field(field(nil, 2, part), 1, []byte("ack id")), 2, other))
	b := unknown(field(unknown(nil), 1, received))
	b = field(b, 1, nil)
	for size := 1; size <= len(b); size++ {
		wantRead(t, new(response), b, size)
	}
}

// Every beginning of a response is malformed, or a shorter response, and so are lengths
// that reach beyond what there is or beyond the message around them.
func TestResponse_MalformedIsAnError(t *testing.T) {
	whole, err := proto.Marshal(&pubsubpb.StreamingPullResponse{ReceivedMessages: []*pubsubpb.ReceivedMessage{stamped("ack", "id", "then")}})
	if err != nil {
		t.Fatal(err)
	}
	malformed := map[string][]byte{
		"number of eleven bytes": append([]byte{3<<3 | asNumber}, bytes.Repeat([]byte{0xff}, 11)...),
		"number beyond 64 bits":  {3<<3 | asNumber, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2},
		"field zero":             {asBytes, 0},
		"group":                  {9<<3 | 3, 9<<3 | 4},
		"reserved type":          {9<<3 | 7, 0},
		"length beyond the end":  {1<<3 | asBytes, 5, 1},
		"length of 2^63":         {9<<3 | asBytes, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1},
		"field beyond message":   {1<<3 | asBytes, 2, 1<<3 | asBytes, 2, 'a', 'b'},
		"properties":             {4<<3 | asBytes, 1, 0xff},
	}
	for n := 1; n < len(whole); n++ {
		malformed["the first bytes of a response"] = whole[:n]
		for name, b := range malformed {
			var r response
			if err := r.read(cut(b, 3)); !errors.Is(err, errMalformed) {
				t.Errorf("%s: %x: error %v", name, b, err)
			}
		}
	}
}

func FuzzResponse(f *testing.F) {
	b, err := proto.Marshal(&pubsubpb.StreamingPullResponse{ReceivedMessages: []*pubsubpb.ReceivedMessage{stamped("ack", "id", "then"), received("a", "b", epoch)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, 5)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		var want pubsubpb.StreamingPullResponse
		var r response
		err := r.read(cut(b, min(max(size, 1), 1<<20)))
		// The generated code also refuses text that is not UTF-8, and knows groups.
		if proto.Unmarshal(b, &want) == nil && err == nil {
			wantRead(t, &r, b, 7)
		}
	})
}

// What a decoder keeps of a message must not be what the next response is read into.
func TestResponse_SharesNothingWithTheNext(t *testing.T) {
	var r response
	read := func(m *pubsubpb.ReceivedMessage) arrival {
		if err := send(&r, &pubsubpb.StreamingPullResponse{ReceivedMessages: []*pubsubpb.ReceivedMessage{m}}, nil); err != nil {
			t.Fatal(err)
		}
		return r.messages[0]
	}
	first := read(stamped("ack-1", "id-1", "then"))
	read(stamped("ack-2", "id-2", "than"))
	want := arrivedAs(&pubsubpb.StreamingPullResponse{ReceivedMessages: []*pubsubpb.ReceivedMessage{stamped("ack-1", "id-1", "then")}})[0]
	want.msg.PublishTime = first.msg.PublishTime
	if diff := cmp.Diff(want, first, cmp.AllowUnexported(arrival{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	kept := r.messages[:1]
	r.reset()
	if kept[0].msg != nil {
		t.Error("a stream holds on to the messages of a response that was accepted")
	}
}

func TestResponse_AMessageIsThreeAllocations(t *testing.T) {
	const n = 100
	sent := new(pubsubpb.StreamingPullResponse)
	for range n {
		sent.ReceivedMessages = append(sent.ReceivedMessages, &pubsubpb.ReceivedMessage{AckId: "a long id for acknowledging", Message: &pubsubpb.PubsubMessage{
			MessageId: "1234567890", Data: make([]byte, 1000), OrderingKey: "key", PublishTime: timestamppb.New(time.Unix(1, 0)),
		}})
	}
	b, err := proto.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	buffers, r := cut(b, 16<<10), new(response)
	got := testing.AllocsPerRun(10, func() {
		if err := r.read(buffers); err != nil {
			t.Fatal(err)
		}
	})
	if got > 3*n+10 {
		t.Errorf("%v allocations for %d messages", got, n)
	}
}

func BenchmarkResponse(b *testing.B) {
	const n = 1000
	sent := new(pubsubpb.StreamingPullResponse)
	for range n {
		sent.ReceivedMessages = append(sent.ReceivedMessages, &pubsubpb.ReceivedMessage{AckId: string(make([]byte, 180)), Message: &pubsubpb.PubsubMessage{
			MessageId: "1234567890123456", Data: make([]byte, 1000), PublishTime: timestamppb.Now(),
		}})
	}
	wire, err := proto.Marshal(sent)
	if err != nil {
		b.Fatal(err)
	}
	buffers := cut(wire, 16<<10)
	perMessage := func(b *testing.B) {
		b.Helper()
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/message")
	}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		var r response
		for b.Loop() {
			if err := r.read(buffers); err != nil {
				b.Fatal(err)
			}
		}
		perMessage(b)
	})
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		codec := newPullCodec().CodecV2
		for b.Loop() {
			var r pubsubpb.StreamingPullResponse
			if err := codec.Unmarshal(buffers, &r); err != nil {
				b.Fatal(err)
			}
			for _, m := range r.GetReceivedMessages() {
				_ = message.FromProto(m.GetMessage(), 0)
			}
		}
		perMessage(b)
	})
}
