package publish

import (
	"fmt"
	"unicode/utf8"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// Limits of one message in bytes, from "Quotas and limits" in the Pub/Sub
// documentation (https://cloud.google.com/pubsub/quotas#resource_limits).
const (
	maxAttributes     = 100
	maxAttributeKey   = 256
	maxAttributeValue = 1024
	maxOrderingKey    = 1024
)

// A RuleError says that a message breaks a rule of the service, and so was not
// sent: a request is refused whole, with all the good messages in it. The text
// names the attribute and the limit, and never shows a value or a payload.
type RuleError struct {
	// Rule is what the message breaks.
	Rule string
}

func (e *RuleError) Error() string { return "message refused before publishing: " + e.Rule }

func ruleErrorf(format string, args ...any) error {
	return &RuleError{Rule: fmt.Sprintf(format, args...)}
}

// check returns the size of m on the wire, or the rule that m breaks, as a
// *RuleError. Only what the service documents is a rule; a doubtful one is left
// to the service. room is what a request to the topic has for a message and its
// framing.
//
// Invalid UTF-8 is among the rules because gRPC refuses to encode it, as an
// Internal error, which would be retried for ever.
func check(m *message.Message, room int) (int, error) {
	if len(m.Data) == 0 && len(m.Attributes) == 0 {
		return 0, ruleErrorf("it is empty: it needs data or at least one attribute")
	}
	if n := len(m.Attributes); n > maxAttributes {
		return 0, ruleErrorf("it has %d attributes, the limit is %d", n, maxAttributes)
	}
	for k, v := range m.Attributes {
		if err := checkAttribute(k, v); err != nil {
			return 0, err
		}
	}
	if n := len(m.OrderingKey); n > maxOrderingKey {
		return 0, ruleErrorf("its ordering key has %d bytes, the limit is %d", n, maxOrderingKey)
	}
	if !utf8.ValidString(m.OrderingKey) {
		return 0, ruleErrorf("its ordering key is not valid UTF-8")
	}
	size := sizeMessage(m)
	if n := sizeFramed(size); n > room {
		return 0, ruleErrorf("alone it makes a request of %d bytes, the limit is %d", options.MaxRequestBytes-room+n, options.MaxRequestBytes)
	}
	return size, nil
}

func checkAttribute(k, v string) error {
	switch {
	case k == "":
		return ruleErrorf("an attribute has an empty key")
	case len(k) > maxAttributeKey:
		return ruleErrorf("the key of attribute %.40q… has %d bytes, the limit is %d", k, len(k), maxAttributeKey)
	case !utf8.ValidString(k):
		return ruleErrorf("the key of attribute %q is not valid UTF-8", k)
	case message.ReservedAttribute(k):
		return ruleErrorf("attribute %q is reserved: keys must not begin with goog", k)
	case len(v) > maxAttributeValue:
		return ruleErrorf("the value of attribute %q has %d bytes, the limit is %d", k, len(v), maxAttributeValue)
	case !utf8.ValidString(v):
		return ruleErrorf("the value of attribute %q is not valid UTF-8", k)
	default:
		return nil
	}
}
