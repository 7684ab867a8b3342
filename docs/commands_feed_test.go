package docs

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// isEndless reports whether a command goes on until it is interrupted.
func isEndless(c command) bool {
	return !endingFlags.MatchString(c.text) && slices.Contains([]string{"relay", "windowcount", "loadgen"}, c.program())
}

// feed gives a command messages to work on, where it reads a subscription that has none
// from an earlier command. atWork, nil for a command that has an end, returns once the
// server has seen it work.
func (w *walk) feed(c command) (atWork func(context.Context) error, err error) {
	switch {
	case w.srv == nil && isEndless(c):
		return nil, errors.New("it has no end, and the page's own server does not tell when it has worked: give it one, as --stop_when_idle")
	case w.srv == nil:
		return nil, nil
	}
	for _, name := range resource.FindAllString(c.text, -1) {
		topic := strings.Replace(name, "/subscriptions/", "/topics/", 1)
		switch {
		case c.program() == "loadgen":
			before := w.srv.Published(topic)
			atWork = func(ctx context.Context) error { return w.srv.AwaitPublished(ctx, topic, before+1) }
		case topic != name && (c.program() == "relay" || c.program() == "windowcount"):
			before := w.srv.Stats(name)
			if before.Backlog == 0 {
				m := message.New([]byte("an order")).WithAttribute("event", "order.paid").WithAttribute("region", "eu-west")
				if _, err := w.srv.Publish(topic, m); err != nil {
					return nil, err
				}
			}
			atWork = func(ctx context.Context) error {
				return w.srv.Await(ctx, name, func(s pubsubtest.Stats) bool { return s.Acknowledged > before.Acknowledged })
			}
		}
	}
	if !isEndless(c) {
		return nil, nil
	}
	return atWork, nil
}
