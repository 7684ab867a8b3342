package dlq

import (
	"errors"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// Field numbers of google.pubsub.v1.PubsubMessage, of a map's entries and of a
// Timestamp. The generated code refuses text that is not valid UTF-8, which may be
// the very reason that a message is a dead letter; here it is bytes in either
// direction. wire_test.go holds the result against the generated code.
const (
	fieldData        protowire.Number = 1
	fieldAttributes  protowire.Number = 2
	fieldMessageID   protowire.Number = 3
	fieldPublishTime protowire.Number = 4
	fieldOrderingKey protowire.Number = 5

	fieldMapKey   protowire.Number = 1
	fieldMapValue protowire.Number = 2

	fieldSeconds protowire.Number = 1
	fieldNanos   protowire.Number = 2
)

var (
	errWire   = errors.New("the data is no PubsubMessage in the wire form of protocol buffers")
	errFields = errors.New("the data has no field of a PubsubMessage")
)

// marshal returns m as a PubsubMessage, which has no delivery attempt. What is empty
// takes nothing.
func marshal(m *message.Message) []byte {
	// Enough for the rest; growing by doubling would copy what is large.
	const timestamp = 32
	b := make([]byte, 0, sizeMessage(m)+sizeField(len(m.ID))+timestamp+sizeField(len(m.OrderingKey)))
	if len(m.Data) > 0 {
		b = appendField(b, fieldData, m.Data)
	}
	for k, v := range m.Attributes {
		b = protowire.AppendTag(b, fieldAttributes, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(sizeField(len(k))+sizeField(len(v))))
		b = appendField(b, fieldMapKey, k)
		b = appendField(b, fieldMapValue, v)
	}
	if m.ID != "" {
		b = appendField(b, fieldMessageID, m.ID)
	}
	if !m.PublishTime.IsZero() {
		b = appendField(b, fieldPublishTime, appendTimestamp(nil, m.PublishTime))
	}
	if m.OrderingKey != "" {
		b = appendField(b, fieldOrderingKey, m.OrderingKey)
	}
	return b
}

func appendTimestamp(b []byte, t time.Time) []byte {
	if s := t.Unix(); s != 0 {
		b = protowire.AppendTag(b, fieldSeconds, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(s))
	}
	if n := t.Nanosecond(); n != 0 {
		b = protowire.AppendTag(b, fieldNanos, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(n))
	}
	return b
}

// appendField writes a field of bytes or text; all ours have a tag of one byte.
func appendField[S string | []byte](b []byte, field protowire.Number, s S) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(s)))
	return append(b, s...)
}

// sizeField is the size of a field of n bytes.
func sizeField(n int) int { return 1 + protowire.SizeBytes(n) }

// sizeMessage is how many bytes data and attributes have in a PubsubMessage, all that
// an envelope is published with.
func sizeMessage(m *message.Message) int {
	n := 0
	if len(m.Data) > 0 {
		n += sizeField(len(m.Data))
	}
	for k, v := range m.Attributes {
		n += sizeField(sizeField(len(k)) + sizeField(len(v)))
	}
	return n
}

// unmarshal reads a PubsubMessage. It skips fields that it does not know, beside one
// at least that it does: text and other data may have the form of fields by chance. Of
// several of one kind the last counts. The message shares b.
func unmarshal(b []byte) (*message.Message, error) {
	m, known := new(message.Message), len(b) == 0
	ok := eachBytes(b, func(field protowire.Number, value []byte) bool {
		known = known || field <= fieldOrderingKey
		switch field {
		case fieldData:
			m.Data = value
		case fieldAttributes:
			return parseAttribute(m, value)
		case fieldMessageID:
			m.ID = string(value)
		case fieldPublishTime:
			var ok bool
			m.PublishTime, ok = parseTimestamp(value)
			return ok
		case fieldOrderingKey:
			m.OrderingKey = string(value)
		default:
		}
		return true
	})
	switch {
	case !ok:
		return nil, errWire
	case !known:
		return nil, errFields
	}
	return m, nil
}

func parseAttribute(m *message.Message, entry []byte) bool {
	var key, text string
	ok := eachBytes(entry, func(field protowire.Number, value []byte) bool {
		switch field {
		case fieldMapKey:
			key = string(value)
		case fieldMapValue:
			text = string(value)
		default:
		}
		return true
	})
	if m.Attributes == nil {
		m.Attributes = make(map[string]string)
	}
	m.Attributes[key] = text
	return ok
}

// maxTimestamp is how far a Timestamp is from the epoch at most, by its definition.
const maxTimestamp = 253402300799

func parseTimestamp(b []byte) (time.Time, bool) {
	var seconds, nanos int64
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return time.Time{}, false
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(field, kind, b); n < 0 {
			return time.Time{}, false
		}
		if number, _ := protowire.ConsumeVarint(b[:n]); kind == protowire.VarintType {
			switch field {
			case fieldSeconds:
				seconds = int64(number)
			case fieldNanos:
				nanos = int64(number)
			default:
			}
		}
		b = b[n:]
	}
	if seconds > maxTimestamp || seconds < -maxTimestamp || nanos < 0 || nanos >= int64(time.Second) {
		return time.Time{}, false
	}
	return time.Unix(seconds, nanos).UTC(), true
}

// eachBytes calls f with each field of b that holds bytes or text. It is false where
// b is malformed, or f says so.
func eachBytes(b []byte, f func(field protowire.Number, value []byte) bool) bool {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(field, kind, b); n < 0 {
			return false
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b)
			if !f(field, value) {
				return false
			}
		}
		b = b[n:]
	}
	return true
}
