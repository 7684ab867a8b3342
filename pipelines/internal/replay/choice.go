package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A choice says which letters are replayed, and where to. What it does not choose stays
// in the subscription.
type choice struct {
	destinations  []string  // full names; empty for any
	errorContains string    // empty for any
	after, before time.Time // when a letter was given up: not before after, and before before; zero for any
	begun         time.Time // when the replay was: it takes what was there
	maxHops       int       // from that number on a letter is left
	outputTopic   string    // of every letter; empty for its own destination
	queueTopic    string    // where letters go that fail again
	ownTopic      string    // of the subscription; empty where nobody may know
}

// isNew reports whether a letter that the service has published then was not there when the
// replay began: by the clock of the service, as those of workers may be anywhere. What has
// failed again meanwhile is known by the time at which this process gave it up, for the
// service's clock may differ from its own.
func (c choice) isNew(e dlq.Entry, published time.Time) bool {
	return !published.Before(c.begun) || e.Hops > 1 && !e.Time.Before(c.begun)
}

// topicOf returns the topic that e is to be published to, or why it is left.
func (c choice) topicOf(e dlq.Entry) (topic, why string) {
	if why := c.unwanted(e); why != "" {
		return "", why
	}
	if why := c.unfit(e); why != "" {
		return "", why
	}
	if c.outputTopic != "" {
		return c.outputTopic, ""
	}
	switch _, err := message.ParseTopic(e.Destination); {
	case isSubscription(e.Destination):
		return "", "it came from a subscription: --output_topic says where such letters go"
	case err != nil:
		return "", "its destination is no topic: --output_topic says where such letters go"
	case e.Destination == c.queueTopic, e.Destination == c.ownTopic:
		return "", "its destination is the dead-letter topic"
	}
	return e.Destination, ""
}

// unwanted says why e is not among the letters that were asked for.
func (c choice) unwanted(e dlq.Entry) string {
	switch {
	case e.Kind == dlq.Foreign && e.Error != "":
		return "no dead letter: " + e.Error
	case e.Kind == dlq.Foreign:
		return "no dead letter"
	case len(c.destinations) > 0 && !slices.Contains(c.destinations, e.Destination):
		return "not chosen by --destination"
	case !strings.Contains(e.Error, c.errorContains):
		return "not chosen by --error_contains"
	case e.Time.Before(c.after):
		return "not chosen by --given_up_after"
	case !c.before.IsZero() && !e.Time.Before(c.before):
		return "not chosen by --given_up_before"
	}
	return ""
}

// unfit says why e, which was asked for, cannot be replayed.
func (c choice) unfit(e dlq.Entry) string {
	switch {
	case e.Message == nil:
		return "it holds nothing that could be published: an empty message, or a record that never became one"
	case !e.Countable():
		return "its message has a hundred attributes, so that nothing would count how often it fails"
	case e.Hops >= c.maxHops:
		return fmt.Sprintf("a dead letter for the %d. time: --max_hops is %d", e.Hops, c.maxHops)
	}
	return ""
}

func isSubscription(name string) bool {
	_, err := message.ParseSubscription(name)
	return err == nil
}
