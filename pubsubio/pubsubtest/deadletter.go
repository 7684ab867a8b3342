package pubsubtest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// deadLetters returns the topic of the dead-letter policy, nil if there is no
// policy or no such topic: messages are then delivered without end, as they are
// by the service where it lacks the permission to forward them.
func (q *subscription) deadLetters() *topic {
	name := q.settings.Load().deadLetterTopic
	if name == "" {
		return nil
	}
	t, err := q.server.resources.topic(name)
	if err != nil {
		return nil
	}
	return t
}

// forward publishes letters to their topic, with the attributes by which the
// service says where they come from.
func (q *subscription) forward(letters []delivery, to *topic) {
	if len(letters) == 0 {
		return
	}
	project, id := q.projectAndID()
	msgs := make([]stored, len(letters))
	for i, l := range letters {
		wire := slices.Clip(l.msg.wire)
		wire = appendAttribute(wire, "CloudPubSubDeadLetterSourceDeliveryCount", strconv.Itoa(int(l.attempt)))
		wire = appendAttribute(wire, "CloudPubSubDeadLetterSourceSubscription", id)
		wire = appendAttribute(wire, "CloudPubSubDeadLetterSourceSubscriptionProject", project)
		wire = appendAttribute(wire, "CloudPubSubDeadLetterSourceTopicPublishTime",
			time.Unix(0, l.msg.published).UTC().Format(time.RFC3339Nano))
		msgs[i].wire = wire
	}
	to.publish(msgs)
}

// appendAttribute adds an attribute to a PubsubMessage in wire form.
func appendAttribute(b []byte, key, value string) []byte {
	var entry []byte
	entry = protowire.AppendTag(entry, 1, protowire.BytesType)
	entry = protowire.AppendString(entry, key)
	entry = protowire.AppendTag(entry, 2, protowire.BytesType)
	entry = protowire.AppendString(entry, value)
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	return protowire.AppendBytes(b, entry)
}

// projectAndID splits the subscription's name, which was checked when it was made.
func (q *subscription) projectAndID() (project, id string) {
	parts := strings.Split(q.name, "/")
	return parts[1], parts[3]
}
