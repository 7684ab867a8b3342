// Package fields codes a struct in the wire form of protocol buffers, field by
// field, so that a later version may have more fields. Texts are bytes, which need
// not be valid UTF-8.
package fields

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// AppendBytes writes a field of bytes.
func AppendBytes[S string | []byte](b []byte, field protowire.Number, s S) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(s)))
	return append(b, s...)
}

// AppendNumber writes a field with a number of either sign.
func AppendNumber(b []byte, field protowire.Number, n int64) []byte {
	b = protowire.AppendTag(b, field, protowire.VarintType)
	return protowire.AppendVarint(b, protowire.EncodeZigZag(n))
}

// AppendTime writes nothing for a zero time, another as seconds in field and
// nanoseconds in the one after it.
func AppendTime(b []byte, field protowire.Number, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	b = AppendNumber(b, field, t.Unix())
	return AppendNumber(b, field+1, int64(t.Nanosecond()))
}

// Fields are what was read, by their numbers. The last of several of one number
// counts.
type Fields struct {
	Bytes   map[protowire.Number][]byte // parts of what was read
	Numbers map[protowire.Number]int64
}

// Read reads all fields of b, also those that its caller does not know; false where
// b is malformed.
func Read(b []byte) (Fields, bool) {
	f := Fields{Bytes: make(map[protowire.Number][]byte), Numbers: make(map[protowire.Number]int64)}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return Fields{}, false
		}
		b = b[n:]
		switch kind {
		case protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			f.Numbers[field] = protowire.DecodeZigZag(v)
		case protowire.BytesType:
			f.Bytes[field], n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return Fields{}, false
		}
		b = b[n:]
	}
	return f, true
}

// Time returns the time that AppendTime wrote, in UTC; zero where it wrote none.
func (f Fields) Time(field protowire.Number) time.Time {
	seconds, ok := f.Numbers[field]
	if !ok {
		return time.Time{}
	}
	return time.Unix(seconds, f.Numbers[field+1]).UTC()
}
