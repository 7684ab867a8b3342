package source

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// A wire reads protocol buffers from the buffers that gRPC has received them in, and
// keeps nothing of them. Once anything is malformed it is bad, gives zero values and has
// no next field.
//
// Where a message or a value ends is said as what remains behind it.
type wire struct {
	now       []byte // what remains of the buffer that is read
	then      mem.BufferSlice
	remaining int    // bytes, of all buffers
	tag       uint64 // of the field that next has come to: its number and type
	bad       bool
}

func wireOf(buffers mem.BufferSlice) wire { return wire{then: buffers, remaining: buffers.Len()} }

// next goes to the next field of the message that ends there, whose value is then to
// be read or skipped, and reports whether there is one.
func (w *wire) next(end int) bool {
	if w.bad || w.remaining <= end {
		w.bad = w.bad || w.remaining < end // A value has gone beyond its message.
		return false
	}
	w.tag = w.varint()
	if n, _ := protowire.DecodeTag(w.tag); !n.IsValid() {
		w.bad = true
	}
	return !w.bad
}

// varint reads a number.
func (w *wire) varint() uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		if !w.fill() {
			break
		}
		b := w.now[0]
		w.forward(1)
		if shift == 63 && b > 1 {
			break
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	w.bad = true
	return 0
}

// length reads the length of a value, and returns where the value ends.
func (w *wire) length() (end int) {
	n := w.varint()
	if n > uint64(w.remaining) {
		w.bad = true
		return w.remaining
	}
	return w.remaining - int(n)
}

// bytes reads a value of bytes, nil where there are none.
func (w *wire) bytes() []byte {
	end := w.length()
	if w.remaining == end {
		return nil
	}
	return w.appendTo(make([]byte, 0, w.remaining-end), end)
}

// appendTo appends to dst what is left until there.
func (w *wire) appendTo(dst []byte, end int) []byte {
	for w.remaining > end && w.fill() {
		part := w.now[:min(len(w.now), w.remaining-end)]
		dst = append(dst, part...)
		w.forward(len(part))
	}
	return dst
}

// skip skips a value.
func (w *wire) skip() {
	end := w.remaining
	switch _, kind := protowire.DecodeTag(w.tag); kind {
	case protowire.VarintType:
		w.varint()
		return
	case protowire.Fixed32Type:
		end -= 4
	case protowire.Fixed64Type:
		end -= 8
	case protowire.BytesType:
		end = w.length()
	default: // A group, of which the service's messages have none.
		w.bad = true
	}
	for w.remaining > end {
		if !w.fill() {
			w.bad = true
			return
		}
		w.forward(min(len(w.now), w.remaining-end))
	}
}

// fill goes to the next buffer where this one has been read, and reports whether
// anything is left.
func (w *wire) fill() bool {
	for len(w.now) == 0 {
		if len(w.then) == 0 {
			return false
		}
		w.now, w.then = w.then[0].ReadOnlyData(), w.then[1:]
	}
	return true
}

func (w *wire) forward(n int) {
	w.now = w.now[n:]
	w.remaining -= n
}
