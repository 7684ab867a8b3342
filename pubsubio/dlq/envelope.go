package dlq

import (
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// The attributes of an envelope. Each value has at most 1,024 bytes of valid UTF-8.
const (
	// ConnectorAttribute is Letter.Connector: which kind of transform gave up.
	ConnectorAttribute = "dlq-connector"
	// DestinationAttribute is Letter.Destination: where the record was to go, or came
	// from.
	DestinationAttribute = "dlq-destination"
	// ErrorAttribute is Letter.Error, cut at 1,024 bytes, where it then ends in "...".
	ErrorAttribute = "dlq-error"
	// TimestampAttribute is Letter.Time, in RFC 3339.
	TimestampAttribute = "dlq-timestamp"
	// WorkerAttribute names the host and the process that gave the record up.
	WorkerAttribute = "dlq-worker"

	// HopsAttribute counts how often a message became a dead letter: 1 at first, and
	// one more than the message's own attribute of this name where it has one, as one
	// that was replayed has. Who replays refuses above a number; the queue takes any.
	HopsAttribute = "dlq-hops"
	// PayloadAttribute says what the data is where it is no message: "record" for
	// Letter.Record, "none" for a letter that had neither.
	PayloadAttribute = "dlq-payload"

	// IDAttribute is that of one part of an envelope: the same for all of them.
	IDAttribute = "dlq-id"
	// PartAttribute says which part it is, as "2/3", the second of three.
	PartAttribute = "dlq-part"
	// SizeAttribute is how many bytes the parts have together.
	SizeAttribute = "dlq-size"
)

// Values of PayloadAttribute.
const (
	payloadRecord = "record"
	payloadNone   = "none"
)

const (
	// maxValue is how many bytes the value of an attribute may have, from "Quotas and
	// limits" in the Pub/Sub documentation
	// (https://cloud.google.com/pubsub/quotas#resource_limits).
	maxValue = 1024
	ellipsis = "..."
)

// seal returns what carries a letter to a topic: one message, or the parts of one.
func seal(l Letter, topic string) []*message.Message {
	attributes := map[string]string{
		ConnectorAttribute:   cut(l.Connector),
		DestinationAttribute: cut(l.Destination),
		ErrorAttribute:       cut(l.Error),
		TimestampAttribute:   timestamp(l.Time),
		WorkerAttribute:      worker(),
		HopsAttribute:        strconv.Itoa(min(1+hopsOf(l.Message), math.MaxInt32)),
	}
	var data []byte
	switch {
	case l.Message != nil:
		data = marshal(l.Message)
	case l.Record != nil:
		data, attributes[PayloadAttribute] = l.Record, payloadRecord
	default:
		attributes[PayloadAttribute] = payloadNone
	}
	return split(&message.Message{Data: data, Attributes: attributes}, topic)
}

// cut makes s the value of an attribute: what is not valid UTF-8 becomes U+FFFD, and
// what is too long ends in "...".
func cut(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxValue {
		return s
	}
	n := maxValue - len(ellipsis)
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + ellipsis
}

// timestamp is t in RFC 3339, with as many digits of a second as it has.
func timestamp(t time.Time) string {
	if t.IsZero() {
		t = time.Now()
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// worker names this process among those of a job.
var worker = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return cut(host + "/" + strconv.Itoa(os.Getpid()))
})

// hopsOf is how often a message was a dead letter before. An attribute that is no
// such number is one of the user's own, and counts for none.
func hopsOf(m *message.Message) int {
	if m == nil {
		return 0
	}
	n, err := strconv.ParseUint(m.Attributes[HopsAttribute], 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}
