package source

import (
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// What a field begins with: its number and the type of its value.
const (
	asNumber = 0
	asBytes  = 2
)

// The fields that a reader needs of google.pubsub.v1.StreamingPullResponse,
// ReceivedMessage and PubsubMessage, of a map's entry and of
// google.protobuf.Timestamp. response_test.go holds what is read against the
// generated code.
const (
	tagReceivedMessages       = 1<<3 | asBytes
	tagSubscriptionProperties = 4<<3 | asBytes

	tagAckID           = 1<<3 | asBytes
	tagMessage         = 2<<3 | asBytes
	tagDeliveryAttempt = 3<<3 | asNumber

	tagData        = 1<<3 | asBytes
	tagAttributes  = 2<<3 | asBytes
	tagMessageID   = 3<<3 | asBytes
	tagPublishTime = 4<<3 | asBytes
	tagOrderingKey = 5<<3 | asBytes

	tagKey   = 1<<3 | asBytes
	tagValue = 2<<3 | asBytes

	tagSeconds = 1<<3 | asNumber
	tagNanos   = 2<<3 | asNumber
)

var errMalformed = errors.New("source: malformed response of the service")

// A response is one of a streaming pull's, as far as a reader needs it. It is read from
// the buffers that it came in straight into what decoders get: the generated code copies
// it twice, and makes of each message objects that serve nothing else (docs/decisions/0028). A
// stream reads its responses into one.
type response struct {
	messages   []arrival
	properties *pubsubpb.StreamingPullResponse_SubscriptionProperties // nil where it tells none

	wire    wire
	strings texts // of the message being read
}

// An arrival is a message as it came. Its strings are parts of one: who keeps an id
// keeps the ordering key and the attributes too, but not the data.
type arrival struct {
	msg   *message.Message
	ackID string
}

// texts are the strings of a message, one behind another.
type texts struct {
	all            []byte
	id, ackID, key span
	attributes     []attribute
}

// A span is a part of texts.all.
type span struct{ from, to int }

func (s span) of(all string) string { return all[s.from:s.to] }

type attribute struct{ key, value span }

// pullCodec encodes what is sent on a stream as gRPC does, and reads responses.
type pullCodec struct{ encoding.CodecV2 }

func newPullCodec() pullCodec { return pullCodec{encoding.GetCodecV2(encodingproto.Name)} }

// Unmarshal is encoding.CodecV2's.
func (c pullCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*response); ok {
		return r.read(data)
	}
	return c.CodecV2.Unmarshal(data, v)
}

// reset lets go of what was read.
func (r *response) reset() {
	clear(r.messages)
	r.messages, r.properties = r.messages[:0], nil
}

// read reads a response, which shares nothing with buffers. Fields that it does not know
// are skipped.
func (r *response) read(buffers mem.BufferSlice) error {
	r.reset()
	r.wire = wireOf(buffers)
	defer func() { r.wire = wire{} }() // The buffers are gRPC's.
	w := &r.wire
	for w.next(0) {
		switch w.tag {
		case tagReceivedMessages:
			r.messages = append(r.messages, r.arrival(w.length()))
		case tagSubscriptionProperties:
			if r.properties == nil {
				r.properties = new(pubsubpb.StreamingPullResponse_SubscriptionProperties)
			}
			if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(w.bytes(), r.properties); err != nil {
				return fmt.Errorf("%w: %w", errMalformed, err)
			}
		default:
			w.skip()
		}
	}
	if w.bad {
		return errMalformed
	}
	return nil
}

// arrival reads the ReceivedMessage that ends there.
func (r *response) arrival(end int) arrival {
	w, s := &r.wire, &r.strings
	*s = texts{all: s.all[:0], attributes: s.attributes[:0]}
	m := new(message.Message)
	for w.next(end) {
		switch w.tag {
		case tagAckID:
			s.ackID = r.text()
		case tagMessage:
			r.message(w.length(), m)
		case tagDeliveryAttempt:
			m.DeliveryAttempt = int(int32(w.varint()))
		default:
			w.skip()
		}
	}
	all := string(s.all)
	m.ID, m.OrderingKey = s.id.of(all), s.key.of(all)
	if len(s.attributes) > 0 {
		m.Attributes = make(map[string]string, len(s.attributes))
		for _, a := range s.attributes {
			m.Attributes[a.key.of(all)] = a.value.of(all)
		}
	}
	return arrival{msg: m, ackID: s.ackID.of(all)}
}

// message reads the PubsubMessage that ends there, all but its strings into m.
func (r *response) message(end int, m *message.Message) {
	w, s := &r.wire, &r.strings
	for w.next(end) {
		switch w.tag {
		case tagData:
			m.Data = w.bytes()
		case tagAttributes:
			s.attributes = append(s.attributes, r.attribute(w.length()))
		case tagMessageID:
			s.id = r.text()
		case tagPublishTime:
			m.PublishTime = r.time(w.length())
		case tagOrderingKey:
			s.key = r.text()
		default:
			w.skip()
		}
	}
}

// text reads a string.
func (r *response) text() span {
	from := len(r.strings.all)
	r.strings.all = r.wire.appendTo(r.strings.all, r.wire.length())
	return span{from, len(r.strings.all)}
}

// attribute reads the entry of a map that ends there.
func (r *response) attribute(end int) (a attribute) {
	for r.wire.next(end) {
		switch r.wire.tag {
		case tagKey:
			a.key = r.text()
		case tagValue:
			a.value = r.text()
		default:
			r.wire.skip()
		}
	}
	return a
}

// time reads the Timestamp that ends there.
func (r *response) time(end int) time.Time {
	var seconds int64
	var nanos int32
	for r.wire.next(end) {
		switch r.wire.tag {
		case tagSeconds:
			seconds = int64(r.wire.varint())
		case tagNanos:
			nanos = int32(r.wire.varint())
		default:
			r.wire.skip()
		}
	}
	return time.Unix(seconds, int64(nanos)).UTC()
}
