package dlq

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fields"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func init() {
	t := reflect.TypeFor[Entry]()
	beam.RegisterType(t)
	beam.RegisterCoder(t, encodeEntry, decodeEntry)
}

// The fields of a coded Entry, see package fields. A time takes two. Those of a part
// are fields of their own.
const (
	entryKind protowire.Number = iota + 1
	entryID
	entryMessage
	entryRecord
	entryConnector
	entryDestination
	entryError
	entryWorker
	entryTime
	entryTimeNanos
	entryHops
	entryPartID
	entryPartNumber
	entryPartOf
	entryPartSize
	entryPartData
	entryPartPayload
)

var errMalformedEntry = errors.New("dlq: decode an entry: it is malformed")

// encodeEntry writes e so that any of it survives, byte by byte: Beam's own coding of
// a struct would change what is not valid UTF-8.
func encodeEntry(e Entry) []byte {
	var m []byte
	if e.Message != nil {
		m = message.Marshal(e.Message)
	}
	size := 256 + len(m) + len(e.Record) + len(e.Error)
	if e.Part != nil {
		size += len(e.Part.Data)
	}
	b := make([]byte, 0, size)
	b = fields.AppendNumber(b, entryKind, int64(e.Kind))
	b = fields.AppendBytes(b, entryID, e.ID)
	if e.Message != nil {
		b = fields.AppendBytes(b, entryMessage, m)
	}
	if e.Record != nil {
		b = fields.AppendBytes(b, entryRecord, e.Record)
	}
	b = fields.AppendBytes(b, entryConnector, e.Connector)
	b = fields.AppendBytes(b, entryDestination, e.Destination)
	b = fields.AppendBytes(b, entryError, e.Error)
	b = fields.AppendBytes(b, entryWorker, e.Worker)
	b = fields.AppendTime(b, entryTime, e.Time)
	b = fields.AppendNumber(b, entryHops, int64(e.Hops))
	if p := e.Part; p != nil {
		b = fields.AppendBytes(b, entryPartID, p.ID)
		b = fields.AppendNumber(b, entryPartNumber, int64(p.Number))
		b = fields.AppendNumber(b, entryPartOf, int64(p.Of))
		b = fields.AppendNumber(b, entryPartSize, p.Size)
		b = fields.AppendBytes(b, entryPartData, p.Data)
		b = fields.AppendBytes(b, entryPartPayload, p.payload)
	}
	return b
}

// decodeEntry reads what encodeEntry wrote, and skips fields that it does not know.
// Times are in UTC.
func decodeEntry(b []byte) (Entry, error) {
	read, ok := fields.Read(b)
	if !ok {
		return Entry{}, errMalformedEntry
	}
	e := Entry{
		Kind:        Kind(read.Numbers[entryKind]),
		ID:          string(read.Bytes[entryID]),
		Connector:   string(read.Bytes[entryConnector]),
		Destination: string(read.Bytes[entryDestination]),
		Error:       string(read.Bytes[entryError]),
		Worker:      string(read.Bytes[entryWorker]),
		Time:        read.Time(entryTime),
		Hops:        int(read.Numbers[entryHops]),
	}
	if record, ok := read.Bytes[entryRecord]; ok {
		e.Record = append([]byte{}, record...)
	}
	if id, ok := read.Bytes[entryPartID]; ok {
		e.Part = &Part{
			ID:      string(id),
			Number:  int(read.Numbers[entryPartNumber]),
			Of:      int(read.Numbers[entryPartOf]),
			Size:    read.Numbers[entryPartSize],
			Data:    append([]byte(nil), read.Bytes[entryPartData]...),
			payload: string(read.Bytes[entryPartPayload]),
		}
	}
	if m, ok := read.Bytes[entryMessage]; ok {
		var err error
		if e.Message, err = message.Unmarshal(m); err != nil {
			return Entry{}, fmt.Errorf("dlq: decode an entry: %w", err)
		}
	}
	return e, nil
}
