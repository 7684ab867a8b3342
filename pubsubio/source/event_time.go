package source

import (
	"fmt"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// eventTime returns what is known of the event time of a message that was received,
// for the watermark as well as for its records; false where Config.TimestampAttribute
// says none that can be used. The decoder is not asked then, and the publish time,
// which the message's failure has for its own, stands in.
//
// Where the decoder gives each record its time, the message holds the watermark as
// one that is WatermarkLag older than its publish time, until its records' times are
// known: see Timed.
func (r *reader) eventTime(m *message.Message) (t time.Time, ok bool) {
	publish := publishTime(m)
	switch {
	case r.config.TimestampAttribute != "":
		t, err := timestampOf(m, r.config.TimestampAttribute)
		if err != nil {
			return publish, false
		}
		return t, true
	case r.config.timedRecords:
		return publish.Add(-r.config.WatermarkLag), true
	}
	return publish, true
}

// publishTime returns the publish time of a message. The service gives one to each;
// without it, it is the epoch.
func publishTime(m *message.Message) time.Time {
	if m.PublishTime.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return m.PublishTime
}

// timestampOf reads the event time in an attribute.
func timestampOf(m *message.Message, attribute string) (time.Time, error) {
	s, ok := m.Attributes[attribute]
	if !ok {
		return time.Time{}, errNoTimestamp
	}
	t, err := parseTimestamp(s)
	if t.IsZero() {
		t = t.Add(1) // Go's zero time, the start of the year 1, is none to the watermark.
	}
	return t, err
}

// checkTime returns why a message has no event time, nil where it has one. A number
// that looks like seconds is counted, and the first is warned of.
func (v *visit) checkTime(d *delivery) error {
	attribute := v.reader.config.TimestampAttribute
	if attribute == "" {
		return nil
	}
	if d.untimed {
		_, err := timestampOf(d.msg, attribute)
		return fmt.Errorf("TimestampAttribute %q: %w", attribute, err)
	}
	if looksLikeSeconds(d.msg.Attributes[attribute], d.eventTime) && v.group.counts.TimestampsInSeconds.Add(1) == 1 {
		warn("an event time lies in 1970: it is taken for milliseconds since the Unix epoch, and looks like seconds; have the publisher write milliseconds or RFC 3339 (further ones are only counted, as timestampsInSeconds)",
			"subscription", v.reader.subscription, "attribute", attribute, "message", d.msg.ID)
	}
	return nil
}

// emittedAt hears of the earliest time that the decoder gave to what the attempt has
// just emitted, zero for none: from now on it is known how old the messages were.
func (r *reader) emittedAt(a *attempt, oldest time.Time) {
	if oldest.IsZero() {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	a.oldest = earlier(a.oldest, oldest)
	r.wm.received(oldest, now)
}
