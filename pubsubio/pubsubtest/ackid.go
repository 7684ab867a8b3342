package pubsubtest

import (
	"strconv"
	"strings"
)

// maxAckIDBytes bounds Config.AckIDBytes: an id must fit a request of
// acknowledgements many times.
const maxAckIDBytes = 4096

// An ackID names one delivery of one message of one subscription. Its text form
// is the three numbers in base 36, separated and followed by dots.
type ackID struct {
	subscription uint64 // the subscription's number
	seq          uint64 // the message's position in the subscription
	attempt      uint32
}

// ackIDFormat appends ids of at least a given length: short ones are filled up
// with dots.
type ackIDFormat struct{ padding string }

func newAckIDFormat(least int) ackIDFormat {
	return ackIDFormat{padding: strings.Repeat(".", least)}
}

func (f ackIDFormat) append(b []byte, id ackID) []byte {
	start := len(b)
	b = strconv.AppendUint(b, id.subscription, 36)
	b = append(b, '.')
	b = strconv.AppendUint(b, id.seq, 36)
	b = append(b, '.')
	b = strconv.AppendUint(b, uint64(id.attempt), 36)
	b = append(b, '.')
	if n := len(b) - start; n < len(f.padding) {
		b = append(b, f.padding[n:]...)
	}
	return b
}

// parseAckID reads the text form, without an allocation.
func parseAckID[T string | []byte](s T) (id ackID, ok bool) {
	var part [3]uint64
	i := 0
	for p := range part {
		start := i
		for ; i < len(s) && s[i] != '.'; i++ {
			d := digit(s[i])
			if d < 0 || i-start > 11 { // 36^12 < 2^63
				return ackID{}, false
			}
			part[p] = part[p]*36 + uint64(d)
		}
		if i == start || i == len(s) {
			return ackID{}, false
		}
		i++
	}
	for ; i < len(s); i++ {
		if s[i] != '.' {
			return ackID{}, false
		}
	}
	if part[2] > 1<<32-1 {
		return ackID{}, false
	}
	return ackID{subscription: part[0], seq: part[1], attempt: uint32(part[2])}, true
}

func digit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'z':
		return int(c-'a') + 10
	}
	return -1
}

// parseAckIDs reads ids that are all of the subscription with the given number.
// The error is the service's.
func parseAckIDs(texts []string, subscription uint64) ([]ackID, error) {
	ids := make([]ackID, len(texts))
	for i, text := range texts {
		id, ok := parseAckID(text)
		if !ok || id.subscription != subscription {
			return nil, invalidAckID(text)
		}
		ids[i] = id
	}
	return ids, nil
}

func invalidAckID(text string) error {
	if len(text) > 100 {
		text = text[:100] + "…"
	}
	return invalid("You have passed an invalid ack ID to the service (ack_id=%s).", text)
}
