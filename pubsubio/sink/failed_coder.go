package sink

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fields"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func init() {
	t := reflect.TypeFor[Failed]()
	beam.RegisterType(t)
	beam.RegisterCoder(t, encodeFailed, decodeFailed)
}

// The fields of a coded Failed, in the wire form of protocol buffers, so that a
// later one may have more. Texts are bytes: Beam's own coding of a struct would
// change what is not valid UTF-8.
const (
	fieldMessage protowire.Number = iota + 1
	fieldRecord
	fieldDestination
	fieldCode
	fieldStatus
	fieldRule
	fieldError
	fieldAttempts
	fieldTime
	fieldTimeNanos
	fieldEventTime
	fieldEventTimeNanos
)

var errMalformedFailed = errors.New("sink: decode a failed record: it is malformed")

// encodeFailed writes f so that any of it survives, byte by byte.
func encodeFailed(f Failed) []byte {
	size := 128 + len(f.Record) + len(f.Destination) + len(f.Status) + len(f.Rule) + len(f.Error)
	var m []byte
	if f.Message != nil {
		m = message.Marshal(f.Message)
	}
	b := make([]byte, 0, size+len(m))
	if f.Message != nil {
		b = fields.AppendBytes(b, fieldMessage, m)
	}
	if f.Record != nil {
		b = fields.AppendBytes(b, fieldRecord, f.Record)
	}
	b = fields.AppendBytes(b, fieldDestination, f.Destination)
	b = fields.AppendNumber(b, fieldCode, int64(f.Code))
	b = fields.AppendBytes(b, fieldStatus, f.Status)
	b = fields.AppendBytes(b, fieldRule, f.Rule)
	b = fields.AppendBytes(b, fieldError, f.Error)
	b = fields.AppendNumber(b, fieldAttempts, int64(f.Attempts))
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
		Destination: string(read.Bytes[fieldDestination]),
		Code:        codes.Code(read.Numbers[fieldCode]),
		Status:      string(read.Bytes[fieldStatus]),
		Rule:        string(read.Bytes[fieldRule]),
		Error:       string(read.Bytes[fieldError]),
		Attempts:    int(read.Numbers[fieldAttempts]),
		Time:        read.Time(fieldTime),
		EventTime:   read.Time(fieldEventTime),
	}
	if record, ok := read.Bytes[fieldRecord]; ok {
		f.Record = append([]byte{}, record...)
	}
	if m, ok := read.Bytes[fieldMessage]; ok {
		var err error
		if f.Message, err = message.Unmarshal(m); err != nil {
			return Failed{}, fmt.Errorf("sink: decode a failed record: %w", err)
		}
	}
	return f, nil
}
