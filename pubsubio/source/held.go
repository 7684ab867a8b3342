package source

import (
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A held message was received by this reader and is neither acknowledged,
// returned nor dropped. The reader's mutex guards it.
type held struct {
	// msg is the message itself while it is buffered, nil afterwards: a message
	// that was emitted costs its ids only.
	msg   *message.Message
	id    string
	ackID string // of the newest delivery
	// eventTime is the event time as far as it is known on receipt: the publish time
	// where nothing else is set.
	eventTime time.Time
	size      int64
	// delivery is the delivery attempt, zero where the service does not count.
	delivery int
	state    state
	untimed  bool // the event time is not what it should be, and the message to be refused
	lease    *lease
	identity *identity // of an original, where messages have ids
}

// The state of a held message.
type state uint8

const (
	buffered  state = iota // in the FIFO
	staged                 // emitted by an attempt that is in the ledger
	committed              // to be acknowledged
	copied                 // with another message, whose fate it shares
	aside                  // left for others, until the read ends
	gone                   // acknowledged, returned or dropped
)
