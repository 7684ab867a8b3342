package dlq

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A Kind says who put a message into a dead-letter topic.
type Kind int

const (
	// Envelope is a message that a queue over Pub/Sub has published: [Config], or
	// another connector's that writes the same attributes.
	Envelope Kind = iota
	// Forwarded is one that Pub/Sub itself has forwarded, by the dead-letter policy
	// of a subscription.
	Forwarded
	// Foreign is any other.
	Foreign
)

// String returns k's name.
func (k Kind) String() string {
	switch k {
	case Envelope:
		return "envelope"
	case Forwarded:
		return "forwarded"
	case Foreign:
		return "foreign"
	default:
		return fmt.Sprintf("dlq.Kind(%d)", int(k))
	}
}

// An Entry is what a message in a dead-letter topic says. [Decode] makes it.
type Entry struct {
	// Kind says who put it there.
	Kind Kind

	// ID is the id of the message that holds the entry.
	ID string

	// Message is the message that was given up: of an Envelope as it was, with its id
	// and publish time where it had been received; of a Forwarded one without what
	// Pub/Sub has added; a Foreign one is the message itself. Nil where a record never
	// became one, where the letter held nothing, and in a part; nil, too, where the
	// message of an Envelope has neither data nor attributes, for the service takes none
	// without, whatever its ordering key. A message's delivery attempt is lost in an
	// envelope.
	Message *message.Message

	// Record is the record of an Envelope in Beam's coding of its type, where it never
	// became a message. [RecordOf] reads it.
	Record []byte

	// Part is set where the entry is only a part of one: see [Join].
	Part *Part

	// Connector, Destination, Error and Worker are what the envelope's attributes say,
	// of which the first 1,024 bytes arrive. Of a Forwarded message, Destination is the
	// full name of the subscription and Error says after how many deliveries it was
	// given up, or why, where Pub/Sub does; Connector and Worker are empty. Of a
	// Foreign one all are empty, unless it looks like an envelope, and Error then says
	// why it is none.
	Connector, Destination, Error, Worker string

	// Time is when the message was given up: of an Envelope by the clock of the
	// worker, zero where that is unreadable; else when it reached the topic.
	Time time.Time

	// Hops is how often the message has been a dead letter, this time included; of a
	// Foreign one, before.
	Hops int
}

// Decode reads a message of a dead-letter topic, whoever has put it there. It fails
// on none: what it cannot read is Foreign, and whole. The entry shares m's data and
// attributes.
func Decode(m *message.Message) Entry {
	switch {
	case m == nil:
		return foreign(new(message.Message))
	case isEnvelope(m):
		e, err := open(m)
		if err != nil {
			e = foreign(m)
			e.Error = "it has the attributes of an envelope: " + err.Error()
		}
		return e
	case isForwarded(m):
		return forwarded(m)
	default:
		return foreign(m)
	}
}

// Entries is [Decode] as a decoder of a read, source.Read(s, cfg, dlq.Entries).
// Package source has it registered.
func Entries(m *message.Message, emit func(Entry)) error {
	emit(Decode(m))
	return nil
}

// Replay returns the message as it may be published where it was to go: without
// attributes that the service keeps for itself, and with e.Hops as HopsAttribute, by
// which the next dead-letter queue counts on. It has no counter where e is not
// [Entry.Countable]. It is nil where e holds no message, or one of which neither data
// nor attributes are left, and shares data.
func (e Entry) Replay() *message.Message {
	m := e.publishable()
	if m == nil || e.Hops == 0 || !countable(m) {
		return m
	}
	m.Attributes = maps.Clone(m.Attributes) // which may be those of e
	if m.Attributes == nil {
		m.Attributes = make(map[string]string, 1)
	}
	m.Attributes[HopsAttribute] = strconv.Itoa(e.Hops)
	return m
}

// Countable reports whether what Replay returns has room for HopsAttribute. It has none
// with a hundred attributes already, which is all that a message may have, and no number
// of hops then ends that it is published again and again and comes back each time: who
// replays without a look at each message leaves it. It is false where Replay returns nil.
func (e Entry) Countable() bool {
	m := e.publishable()
	return m != nil && countable(m)
}

// publishable is the message without what only the service may add, or nil where
// nothing is left that it would take: HopsAttribute alone must not make it a message.
func (e Entry) publishable() *message.Message {
	if e.Message == nil {
		return nil
	}
	if m := e.Message.Republishable(); !empty(m) {
		return m
	}
	return nil
}

// empty reports whether the service refuses m for having neither data nor attributes.
func empty(m *message.Message) bool { return len(m.Data)+len(m.Attributes) == 0 }

func countable(m *message.Message) bool {
	_, counted := m.Attributes[HopsAttribute]
	return counted || len(m.Attributes) < maxAttributes
}

// maxAttributes is how many attributes a message may have, from "Quotas and limits"
// in the Pub/Sub documentation.
const maxAttributes = 100

// isEnvelope reports whether m has the five attributes that every envelope has, those
// of other connectors included.
func isEnvelope(m *message.Message) bool {
	for _, key := range []string{ConnectorAttribute, DestinationAttribute, ErrorAttribute, TimestampAttribute, WorkerAttribute} {
		if _, ok := m.Attributes[key]; !ok {
			return false
		}
	}
	return true
}

// open reads an envelope.
func open(m *message.Message) (Entry, error) {
	e := Entry{
		Kind:        Envelope,
		ID:          m.ID,
		Connector:   m.Attributes[ConnectorAttribute],
		Destination: m.Attributes[DestinationAttribute],
		Error:       m.Attributes[ErrorAttribute],
		Worker:      m.Attributes[WorkerAttribute],
		Hops:        max(1, hopsOf(m)),
	}
	if t, err := time.Parse(time.RFC3339, m.Attributes[TimestampAttribute]); err == nil {
		e.Time = t.UTC()
	}
	var err error
	if e.Part, err = parsePart(m); err != nil || e.Part != nil {
		return e, err
	}
	return e, e.unpack(m.Attributes[PayloadAttribute], m.Data)
}

// unpack reads the payload of a whole envelope.
func (e *Entry) unpack(payload string, data []byte) (err error) {
	switch payload {
	case "":
		var m *message.Message
		if m, err = unmarshal(data); err == nil && !empty(m) {
			e.Message = m
		}
	case payloadRecord:
		e.Record = data
		if e.Record == nil {
			e.Record = []byte{}
		}
	case payloadNone:
	default:
		err = fmt.Errorf("%s %.40q is none that this version knows", PayloadAttribute, payload)
	}
	return err
}

// What Pub/Sub adds to a message that it forwards to a dead-letter topic, from
// "Dead-letter topics" in its documentation
// (https://cloud.google.com/pubsub/docs/dead-letter-topics). The last is that of
// subscriptions that export.
const (
	forwardedPrefix       = "CloudPubSubDeadLetterSource"
	forwardedCount        = forwardedPrefix + "DeliveryCount"
	forwardedSubscription = forwardedPrefix + "Subscription"
	forwardedProject      = forwardedPrefix + "SubscriptionProject"
	forwardedPublishTime  = forwardedPrefix + "TopicPublishTime"
	forwardedError        = forwardedPrefix + "DeliveryErrorMessage"
)

func isForwarded(m *message.Message) bool {
	_, ok := m.Attributes[forwardedSubscription]
	return ok
}

// forwarded reads a message that Pub/Sub has forwarded.
func forwarded(m *message.Message) Entry {
	original := *m
	original.Attributes = maps.Clone(m.Attributes)
	maps.DeleteFunc(original.Attributes, func(key, _ string) bool { return strings.HasPrefix(key, forwardedPrefix) })
	if t, err := time.Parse(time.RFC3339, m.Attributes[forwardedPublishTime]); err == nil {
		original.PublishTime = t.UTC()
	}
	e := Entry{
		Kind:        Forwarded,
		ID:          m.ID,
		Message:     &original,
		Destination: m.Attributes[forwardedSubscription],
		Error:       m.Attributes[forwardedError],
		Time:        m.PublishTime,
		Hops:        1 + hopsOf(m),
	}
	if project := m.Attributes[forwardedProject]; project != "" && !strings.Contains(e.Destination, "/") {
		e.Destination = "projects/" + project + "/subscriptions/" + e.Destination
	}
	if e.Error == "" {
		e.Error = "not acknowledged in " + m.Attributes[forwardedCount] + " deliveries"
	}
	return e
}

func foreign(m *message.Message) Entry {
	return Entry{Kind: Foreign, ID: m.ID, Message: m, Time: m.PublishTime, Hops: hopsOf(m)}
}
