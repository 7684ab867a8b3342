package publish

import (
	"errors"
	"fmt"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// Field numbers of google.pubsub.v1.PublishRequest, PublishResponse,
// PubsubMessage and of a map's entries. A request is encoded message by message
// as they are added, which costs no allocation and makes its exact size known;
// wire_test.go holds the result against the generated code.
const (
	fieldTopic    protowire.Number = 1
	fieldMessages protowire.Number = 2

	fieldMessageIDs protowire.Number = 1

	fieldData        protowire.Number = 1
	fieldAttributes  protowire.Number = 2
	fieldOrderingKey protowire.Number = 5

	fieldMapKey   protowire.Number = 1
	fieldMapValue protowire.Number = 2
)

// sizeBytes is the size of a field of n bytes: a tag, all ours are one byte, the
// length, the bytes.
func sizeBytes(n int) int { return 1 + protowire.SizeBytes(n) }

// sizeFramed is what a message of that size takes in a request.
func sizeFramed(message int) int { return sizeBytes(message) }

func sizeMessage(m *message.Message) int {
	size := 0
	if len(m.Data) > 0 {
		size += sizeBytes(len(m.Data))
	}
	for k, v := range m.Attributes {
		size += sizeBytes(sizeBytes(len(k)) + sizeBytes(len(v)))
	}
	if m.OrderingKey != "" {
		size += sizeBytes(len(m.OrderingKey))
	}
	return size
}

// requestHeader is how a request to topic begins.
func requestHeader(topic string) []byte { return appendString(nil, fieldTopic, topic) }

// appendMessage adds m, whose sizeMessage is size, to a request.
func appendMessage(b []byte, m *message.Message, size int) []byte {
	b = appendLength(b, fieldMessages, size)
	if len(m.Data) > 0 {
		b = appendLength(b, fieldData, len(m.Data))
		b = append(b, m.Data...)
	}
	for k, v := range m.Attributes {
		b = appendLength(b, fieldAttributes, sizeBytes(len(k))+sizeBytes(len(v)))
		b = appendString(b, fieldMapKey, k)
		b = appendString(b, fieldMapValue, v)
	}
	if m.OrderingKey != "" {
		b = appendString(b, fieldOrderingKey, m.OrderingKey)
	}
	return b
}

// headerSize is the length of requestHeader(topic).
func headerSize(topic string) int { return sizeBytes(len(topic)) }

// decodeMessage is the inverse of appendMessage.
func decodeMessage(framed []byte) (*message.Message, error) {
	field, kind, n := protowire.ConsumeTag(framed)
	if field != fieldMessages || kind != protowire.BytesType {
		return nil, errors.New("no message where a request has one")
	}
	raw, m := protowire.ConsumeBytes(framed[n:])
	if m < 0 {
		return nil, protowire.ParseError(m)
	}
	var pb pubsubpb.PubsubMessage
	if err := proto.Unmarshal(raw, &pb); err != nil {
		return nil, fmt.Errorf("decode a message of a request: %w", err)
	}
	return message.FromProto(&pb, 0), nil
}

func appendLength(b []byte, field protowire.Number, n int) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendVarint(b, uint64(n))
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, s)
}

// countIDs returns how many messages a PublishResponse says were published.
func countIDs(response []byte) (int, error) {
	ids := 0
	for len(response) > 0 {
		field, _, n := protowire.ConsumeField(response)
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		if field == fieldMessageIDs {
			ids++
		}
		response = response[n:]
	}
	return ids, nil
}
