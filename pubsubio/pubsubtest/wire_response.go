package pubsubtest

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// A publishResponse is a PublishResponse with consecutive message ids.
type publishResponse struct {
	first uint64
	n     int
}

func (r *publishResponse) append(b []byte) []byte {
	for i := range r.n {
		var digits [20]byte
		id := strconv.AppendUint(digits[:0], r.first+uint64(i), 10)
		b = append(b, bytesTag(1), byte(len(id)))
		b = append(b, id...)
	}
	return b
}

// A pullResponse is a StreamingPullResponse, or without properties a
// PullResponse, of stored messages.
type pullResponse struct {
	deliveries   []delivery
	subscription uint64 // the number
	ackIDs       ackIDFormat
	attempts     bool   // whether to tell delivery attempts
	properties   []byte // field 4 of a StreamingPullResponse, tag included
}

// maxSize returns a bound of the size of the wire form.
func (r *pullResponse) maxSize() int {
	const overhead = 128 // ids, times, tags and lengths of a message
	n := len(r.properties)
	for i := range r.deliveries {
		n += len(r.deliveries[i].msg.wire) + overhead + len(r.ackIDs.padding)
	}
	return n
}

func (r *pullResponse) append(b []byte) []byte {
	var id, seconds [64]byte
	ack := make([]byte, 0, 64+len(r.ackIDs.padding))
	for _, d := range r.deliveries {
		ack = r.ackIDs.append(ack[:0], ackID{subscription: r.subscription, seq: d.seq, attempt: d.attempt})
		msgID := strconv.AppendUint(id[:0], d.msg.id, 10)
		published := appendTimestamp(seconds[:0], d.msg.published)
		msgSize := len(d.msg.wire) + 2 + len(msgID) + 2 + len(published)
		size := 1 + protowire.SizeBytes(len(ack)) + 1 + protowire.SizeBytes(msgSize)
		if r.attempts {
			size += 1 + protowire.SizeVarint(uint64(d.attempt))
		}
		b = append(b, bytesTag(1)) // received_messages
		b = protowire.AppendVarint(b, uint64(size))
		b = append(b, bytesTag(1)) // ack_id
		b = protowire.AppendBytes(b, ack)
		b = append(b, bytesTag(2)) // message
		b = protowire.AppendVarint(b, uint64(msgSize))
		b = append(b, d.msg.wire...)
		b = append(b, bytesTag(3), byte(len(msgID))) // message_id
		b = append(b, msgID...)
		b = append(b, bytesTag(4), byte(len(published))) // publish_time
		b = append(b, published...)
		if r.attempts {
			b = append(b, varintTag(3)) // delivery_attempt
			b = protowire.AppendVarint(b, uint64(d.attempt))
		}
	}
	return append(b, r.properties...)
}

// appendTimestamp appends a Timestamp. Both fields are written even if zero, so
// that they replace those that a publisher may have set.
func appendTimestamp(b []byte, unixNano int64) []byte {
	sec, nanos := unixNano/int64(time.Second), unixNano%int64(time.Second)
	if nanos < 0 {
		sec, nanos = sec-1, nanos+int64(time.Second)
	}
	b = append(b, varintTag(1)) // seconds
	b = protowire.AppendVarint(b, uint64(sec))
	b = append(b, varintTag(2)) // nanos
	return protowire.AppendVarint(b, uint64(nanos))
}

// bytesTag and varintTag are the tags of fields below 16, of one byte.
func bytesTag(num protowire.Number) byte {
	return byte(protowire.EncodeTag(num, protowire.BytesType))
}

func varintTag(num protowire.Number) byte {
	return byte(protowire.EncodeTag(num, protowire.VarintType))
}
