package pubsubtest

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

var (
	errMalformed = errors.New("malformed message")
	errNotUTF8   = errors.New("string field contains invalid UTF-8")
)

// A publishRequest is a PublishRequest whose messages stay in wire form.
type publishRequest struct {
	topic    string
	messages []stored
	key      []byte // the ordering key of the first message
	bytes    int    // of the messages, with the framing that each has in the request
	refusal  error  // the rule that the request breaks
}

// GetTopic is how the server finds the resource of a request.
func (r *publishRequest) GetTopic() string { return r.topic }

// parse reads the request's wire form, of which its messages remain a part.
func (r *publishRequest) parse(b []byte) error {
	size, severalKeys := len(b), false
	err := eachField(b, func(num protowire.Number, v []byte) error {
		switch num {
		case 1:
			r.topic = string(v)
		case 2:
			key, refusal, err := checkMessage(v)
			if err != nil {
				return err
			}
			if r.refusal == nil {
				r.refusal = refusal
			}
			if r.messages == nil {
				r.messages = make([]stored, 0, min(size/(len(v)+1)+1, maxPublishMessages))
				r.key = key
			}
			severalKeys = severalKeys || !bytes.Equal(key, r.key)
			r.messages = append(r.messages, stored{wire: v})
			r.bytes += framedSize(v)
		}
		return nil
	})
	switch n := len(r.messages); {
	case size > maxPublishBytes:
		r.refusal = tooLarge(maxPublishBytes)
	case n > maxPublishMessages:
		r.refusal = tooMany("messages_count", n, maxPublishMessages)
	case n == 0:
		r.refusal = tooFew("messages_count", n, 1)
	case severalKeys && r.refusal == nil:
		r.refusal = errSeveralKeys
	}
	return err
}

// framedSize is what a message takes in a request: itself, its length and a tag.
func framedSize(wire []byte) int { return 1 + protowire.SizeBytes(len(wire)) }

// checkMessage applies the service's rules to a PubsubMessage in wire form and
// returns its ordering key. err is for one that is none.
func checkMessage(b []byte) (key []byte, refusal, err error) {
	hasData, attributes := false, 0
	err = eachField(b, func(num protowire.Number, v []byte) error {
		switch num {
		case 1:
			hasData = len(v) > 0
		case 2:
			attributes++
			broken, err := checkAttribute(v)
			if refusal == nil {
				refusal = broken
			}
			return err
		case 5:
			key = v
			if !utf8.Valid(v) {
				return errNotUTF8
			}
		}
		return nil
	})
	switch {
	case !hasData && attributes == 0:
		refusal = invalid("One or more messages in the publish request is empty. Each message must contain either non-empty data, or at least one attribute.")
	case attributes > maxAttributes:
		refusal = tooMany("attributes_count", attributes, maxAttributes)
	case len(key) > maxOrderingKey:
		refusal = tooMany("ordering_key_bytes", len(key), maxOrderingKey)
	}
	return key, refusal, err
}

// checkAttribute applies the service's rules to an entry of the attribute map.
func checkAttribute(b []byte) (refusal, err error) {
	key, value, err := attribute(b)
	switch {
	case err != nil:
		return nil, err
	case !utf8.Valid(key) || !utf8.Valid(value):
		return nil, errNotUTF8
	case len(key) == 0:
		return tooFew("attribute_key_bytes", 0, 1), nil
	case len(key) > maxAttributeKey:
		return tooMany("attribute_key_bytes", len(key), maxAttributeKey), nil
	case len(value) > maxAttributeValue:
		return tooMany("attribute_value_bytes", len(value), maxAttributeValue), nil
	case len(key) >= 4 && key[0]|0x20 == 'g' && message.ReservedAttribute(string(key)):
		return invalid("The attribute key %q is reserved: keys must not start with goog.", key), nil
	}
	return nil, nil
}

// attribute reads an entry of the attribute map: in one go if it is written as
// all clients do, the key and then the value, else field by field.
func attribute(b []byte) (key, value []byte, err error) {
	if len(b) > 0 && b[0] == bytesTag(1) {
		k, n := protowire.ConsumeBytes(b[1:])
		if rest := b[1+max(n, 0):]; n > 0 && len(rest) > 0 && rest[0] == bytesTag(2) {
			if v, m := protowire.ConsumeBytes(rest[1:]); m == len(rest)-1 {
				return k, v, nil
			}
		}
	}
	err = eachField(b, func(num protowire.Number, v []byte) error {
		switch num {
		case 1:
			key = v
		case 2:
			value = v
		}
		return nil
	})
	return key, value, err
}

// eachField calls f with the length-delimited fields of a message in wire form,
// in their order, and skips the others.
func eachField(b []byte, f func(protowire.Number, []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errMalformed
		}
		b = b[n:]
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return errMalformed
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return errMalformed
		}
		b = b[n:]
		if err := f(num, v); err != nil {
			return err
		}
	}
	return nil
}

// An acknowledgeRequest is an AcknowledgeRequest with its ids decoded.
type acknowledgeRequest struct {
	subscription string
	ids          []ackID
	refusal      error
}

// GetSubscription is how the server finds the resource of a request.
func (r *acknowledgeRequest) GetSubscription() string { return r.subscription }

// parse reads the request's wire form and keeps none of it.
func (r *acknowledgeRequest) parse(b []byte) error {
	if len(b) > maxAcknowledgeBytes {
		r.refusal = tooLarge(maxAcknowledgeBytes)
	}
	return eachField(b, func(num protowire.Number, v []byte) error {
		switch num {
		case 1:
			r.subscription = string(v)
		case 2:
			id, ok := parseAckID(v)
			if !ok && r.refusal == nil {
				r.refusal = invalidAckID(string(v))
			}
			if r.ids == nil {
				r.ids = make([]ackID, 0, len(b)/(len(v)+2)+1)
			}
			r.ids = append(r.ids, id)
		}
		return nil
	})
}
