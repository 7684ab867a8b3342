package source

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fields"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func init() {
	t := reflect.TypeFor[Failed]()
	beam.RegisterType(t)
	beam.RegisterCoder(t, encodeFailed, decodeFailed)
}

// A Failed is a message that the decoder refused, and why. It is the element of the
// second collection of [ReadWithFailures].
type Failed struct {
	// Message is the whole message, as it was received: with its id, publish time,
	// attributes, ordering key and delivery attempt.
	Message *message.Message

	// Subscription is the full name of the one that it came from.
	Subscription string

	// Error is the whole text: act, message, subscription and cause. The decoders of
	// this package put no payload into it.
	Error string

	// Time is when the message was refused, by the clock of the worker.
	Time time.Time

	// EventTime is the message's event time, to the millisecond: what
	// Config.TimestampAttribute says, or the publish time where that says nothing, or
	// where the decoder gives records their times. It is also the element's.
	EventTime time.Time
}

// DeadLetter implements dlq.Failure: f as a dead-letter queue takes it.
func (f Failed) DeadLetter() dlq.Letter {
	return dlq.Letter{
		Connector:   metricsNamespace,
		Destination: f.Subscription,
		Message:     f.Message,
		Error:       f.Error,
		Time:        f.Time,
		EventTime:   f.EventTime,
	}
}

// The fields of a coded Failed, see package fields. A time takes two.
const (
	fieldMessage protowire.Number = iota + 1
	fieldSubscription
	fieldError
	fieldTime
	fieldTimeNanos
	fieldEventTime
	fieldEventTimeNanos
)

var errMalformedFailed = errors.New("source: decode a failed message: it is malformed")

// encodeFailed writes f so that any of it survives, byte by byte: Beam's own coding
// of a struct would change what is not valid UTF-8.
func encodeFailed(f Failed) []byte {
	var b []byte
	if f.Message != nil {
		m := message.Marshal(f.Message)
		b = make([]byte, 0, len(m)+len(f.Subscription)+len(f.Error)+64)
		b = fields.AppendBytes(b, fieldMessage, m)
	}
	b = fields.AppendBytes(b, fieldSubscription, f.Subscription)
	b = fields.AppendBytes(b, fieldError, f.Error)
	b = fields.AppendTime(b, fieldTime, f.Time)
	return fields.AppendTime(b, fieldEventTime, f.EventTime)
}

// decodeFailed reads what encodeFailed wrote, and skips fields that it does not
// know. Times are in UTC.
func decodeFailed(b []byte) (Failed, error) {
	read, ok := fields.Read(b)
	if !ok {
		return Failed{}, errMalformedFailed
	}
	f := Failed{
		Subscription: string(read.Bytes[fieldSubscription]),
		Error:        string(read.Bytes[fieldError]),
		Time:         read.Time(fieldTime),
		EventTime:    read.Time(fieldEventTime),
	}
	if m, ok := read.Bytes[fieldMessage]; ok {
		var err error
		if f.Message, err = message.Unmarshal(m); err != nil {
			return Failed{}, fmt.Errorf("source: decode a failed message: %w", err)
		}
	}
	return f, nil
}
