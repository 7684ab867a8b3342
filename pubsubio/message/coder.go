package message

import (
	"encoding/binary"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

func init() {
	t := reflect.TypeFor[*Message]()
	beam.RegisterType(t)
	beam.RegisterCoder(t, Marshal, Unmarshal)
}

const (
	// coderNil is the whole of an encoded nil: a pipeline may hold nil messages,
	// and a coder that panics on one names neither the step nor the record.
	coderNil = 0
	// coderVersion begins every other encoded message, so that a later form can
	// be told from this one.
	coderVersion = 1
)

var errMalformed = errors.New("message: decode: malformed message")

// Marshal writes m as the Beam coder of messages does, whole: [Unmarshal] reads it.
//
// Any message survives, also nil and one that the service would refuse: the
// service's own wire form has no place for an attribute that is not valid UTF-8,
// and such a message must still reach a failures output. It is deterministic, so
// that a message may be a key.
func Marshal(m *Message) []byte {
	if m == nil {
		return []byte{coderNil}
	}
	size := 64 + len(m.ID) + len(m.Data) + len(m.OrderingKey)
	for k, v := range m.Attributes {
		size += 8 + len(k) + len(v)
	}
	b := append(make([]byte, 0, size), coderVersion)
	b = binary.AppendVarint(b, int64(m.DeliveryAttempt))
	b = appendTime(b, m.PublishTime)
	b = appendString(b, m.ID)
	b = appendString(b, m.OrderingKey)
	b = appendString(b, m.Data)
	b = binary.AppendUvarint(b, uint64(len(m.Attributes)))
	for _, k := range slices.Sorted(maps.Keys(m.Attributes)) {
		b = appendString(b, k)
		b = appendString(b, m.Attributes[k])
	}
	return b
}

// Unmarshal reads what [Marshal] wrote. The message shares nothing with b.
func Unmarshal(b []byte) (*Message, error) {
	switch {
	case len(b) == 1 && b[0] == coderNil:
		return nil, nil
	case len(b) == 0 || b[0] != coderVersion:
		return nil, errMalformed
	}
	r := wire{b: b[1:]}
	m := &Message{DeliveryAttempt: int(r.varint()), PublishTime: r.time(), ID: string(r.bytes()), OrderingKey: string(r.bytes())}
	m.Data = slices.Clone(r.bytes())
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		if m.Attributes == nil {
			m.Attributes = make(map[string]string)
		}
		key := string(r.bytes())
		m.Attributes[key] = string(r.bytes())
	}
	if r.bad || len(r.b) > 0 {
		return nil, errMalformed
	}
	return m, nil
}

func appendString[S string | []byte](b []byte, s S) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// appendTime writes a zero time as one byte, another as seconds and nanoseconds.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

// A wire is an encoded message being read. Once anything is malformed it is bad,
// and gives zero values.
type wire struct {
	b   []byte
	bad bool
}

func (r *wire) skip(n int) {
	if n <= 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return
	}
	r.b = r.b[n:]
}

func (r *wire) varint() int64 {
	v, n := binary.Varint(r.b)
	r.skip(n)
	return v
}

func (r *wire) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.skip(n)
	return v
}

// bytes returns a part of the input.
func (r *wire) bytes() []byte {
	n := r.uvarint()
	if n == 0 {
		return nil
	}
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	s := r.b[:n]
	r.b = r.b[n:]
	return s
}

func (r *wire) time() time.Time {
	if r.uvarint() == 0 {
		return time.Time{}
	}
	seconds, nanos := r.varint(), r.uvarint()
	if nanos >= uint64(time.Second) {
		r.bad = true
		return time.Time{}
	}
	return time.Unix(seconds, int64(nanos)).UTC()
}
