package load

import (
	"strconv"
	"time"
)

// The attributes by which a message is known.
const (
	runAttribute      = "load_run"
	keyAttribute      = "load_key"
	sequenceAttribute = "load_sequence"
	sentAttribute     = "load_sent"   // nanoseconds since the Unix epoch
	poisonAttribute   = "load_poison" // "true", or not there
)

// An Identity is which message of a stream it is, and when it was sent.
type Identity struct {
	Run, Key string
	Sequence int64
	Sent     time.Time
	Poison   bool
}

// Identify reads the attributes of a message that was received; false where it is
// none of a stream.
func Identify(attributes map[string]string) (Identity, bool) {
	sequence, err := strconv.ParseInt(attributes[sequenceAttribute], 10, 64)
	sent, sentErr := strconv.ParseInt(attributes[sentAttribute], 10, 64)
	id := Identity{
		Run:      attributes[runAttribute],
		Key:      attributes[keyAttribute],
		Sequence: sequence,
		Sent:     time.Unix(0, sent),
		Poison:   attributes[poisonAttribute] == "true",
	}
	return id, err == nil && sentErr == nil && sequence >= 0 && id.Run != "" && id.Key != ""
}
