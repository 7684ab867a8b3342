package sink

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A Failed is a record that can never be published, and why. It is the element of
// Result.Failed, where its time is that of the record.
type Failed struct {
	// Message is the whole message that was rejected, as it was to be published,
	// with the attributes that the sink adds. Nil where the encoder failed.
	Message *message.Message

	// Record is the record in Beam's coding of its type, where the encoder failed so
	// that there is no message; nil otherwise. [RecordOf] reads it.
	Record []byte

	// Destination is the full name of the topic.
	Destination string

	// Code is the status by which the service rejected the message, alone in its
	// request. codes.OK where it was not asked.
	Code codes.Code

	// Status is the service's text beside Code.
	Status string

	// Rule is the rule of the service that the message breaks, where it was not sent
	// because of it. It names the attribute and the limit, and shows no value.
	Rule string

	// Error is the whole text: act, topic, cause and remedy.
	Error string

	// Attempts is how often a request with the message was sent.
	Attempts int

	// Time is when the record failed, by the clock of the worker.
	Time time.Time

	// EventTime is the record's event time, to the millisecond.
	EventTime time.Time
}

// RecordOf returns the record that f's encoder failed on. T is the type of the
// elements of the collection that was written. It is an error where f has a message
// instead, and where the record is not one of T.
func RecordOf[T any](f Failed) (record T, err error) {
	if f.Record == nil {
		return record, errors.New("sink: the failure holds no record: it has the message")
	}
	defer recoverCoder(&err, reflect.TypeFor[T]())
	v, err := beam.NewElementDecoder(reflect.TypeFor[T]()).Decode(bytes.NewReader(f.Record))
	if err != nil {
		return record, fmt.Errorf("sink: read the record of a failure: %w", err)
	}
	record, ok := v.(T)
	if !ok {
		return record, fmt.Errorf("sink: the record of the failure is a %T, not a %T", v, record)
	}
	return record, nil
}

// encodeRecord returns a record in Beam's coding of its type.
func encodeRecord(record any) (b []byte, err error) {
	t := reflect.TypeOf(record)
	defer recoverCoder(&err, t)
	var buf bytes.Buffer
	if err := beam.NewElementEncoder(t).Encode(record, &buf); err != nil {
		return nil, fmt.Errorf("code a record of type %v: %w", t, err)
	}
	return buf.Bytes(), nil
}

// recoverCoder is to be deferred around Beam's coders, which panic where a type has
// none.
func recoverCoder(err *error, t reflect.Type) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("sink: the coder of %v panicked: %v", t, r)
	}
}

// A failure is a Failed in the making, and the error itself.
type failure struct {
	Failed
	at     beam.EventTime
	err    error
	record any // where the encoder failed
}

// notEncoded is the failure of a record that the encoder refused.
func notEncoded(topic string, record any, at beam.EventTime, err error) *failure {
	err = fmt.Errorf("encode a record for %s: %w", topic, err)
	f := newFailure(topic, at, err)
	f.record = record
	return f
}

// rejected is the failure of a message that was rejected.
func rejected(r publish.Rejection) *failure {
	err := r.Err
	var rule *publish.RuleError
	if errors.As(err, &rule) {
		err = fmt.Errorf("publish to %s: %w", r.Topic, err)
	}
	f := newFailure(r.Topic, beam.EventTime(r.Tag), err)
	f.Message, f.Attempts = r.Message, r.Attempts
	if rule != nil {
		f.Rule = rule.Rule
	} else if s, ok := status.FromError(r.Err); ok {
		f.Code, f.Status = s.Code(), s.Message()
	}
	return f
}

func newFailure(topic string, at beam.EventTime, err error) *failure {
	return &failure{
		Failed: Failed{Destination: topic, Error: err.Error(), Time: time.Now().UTC(), EventTime: at.ToTime()},
		at:     at,
		err:    err,
	}
}

// whole returns the Failed with its record. It is an error where the record has no
// coding: what cannot be kept must not be dropped in silence.
func (f *failure) whole() (Failed, error) {
	if f.record != nil && f.Record == nil {
		b, err := encodeRecord(f.record)
		if err != nil {
			return Failed{}, fmt.Errorf("%w; and the record cannot be kept: %w", f.err, err)
		}
		f.Record = b
	}
	return f.Failed, nil
}

// DeadLetter implements dlq.Failure: f as a dead-letter queue takes it.
func (f Failed) DeadLetter() dlq.Letter {
	return dlq.Letter{
		Connector:   namespace,
		Destination: f.Destination,
		Message:     f.Message,
		Record:      f.Record,
		Error:       f.Error,
		Attempts:    f.Attempts,
		Time:        f.Time,
		EventTime:   f.EventTime,
	}
}
