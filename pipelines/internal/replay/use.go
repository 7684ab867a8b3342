package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// use is what s asks of Pub/Sub whatever the letters say: what they were to go to, they
// tell.
func (s settings) use() program.Use {
	u := program.Use{Connection: s.Connection, Sources: []source.Config{sourceConfig(s)}, Words: asFlags, Judge: s.judge}
	if s.queueTopic != "" { // Else it is looked up.
		u.Sinks = append(u.Sinks, sinkConfig(s))
	}
	if s.outputTopic != "" {
		u.Sinks = append(u.Sinks, toTopic(s.Connection, s.outputTopic))
	}
	return u
}

// judge refuses a queue that nobody reads, where what fails again would be lost.
func (s settings) judge(r check.Report) error {
	if resource(r, s.queueTopic).Unread {
		return fmt.Errorf("--dead_letter_topic: %s has no subscription, so that what fails again would be lost; create one, or leave the flag out", s.queueTopic)
	}
	return nil
}

// toTopic publishes to a topic that must be there.
func toTopic(c options.Connection, topic string) sink.Config {
	return sink.Config{
		Topic:                 topic,
		CreateDisposition:     options.CreateNever,
		EmulatorEndpoint:      c.EmulatorEndpoint,
		Endpoint:              c.Endpoint,
		ServiceAccountKeyFile: c.ServiceAccountKeyFile,
	}
}

// Use returns what args ask of Pub/Sub. The error joins what could not be read.
func Use(args []string) (program.Use, error) {
	s, err := parseFlags(args, time.Now())
	u := s.use()
	u.Fault, u.Help = s.validate(), s.Help
	u.Complete = func(ctx context.Context) (program.Use, error) { return complete(ctx, s) }
	return u, err
}

// complete is what s asks of Pub/Sub with the topic that letters go to which fail again.
// Where that is not known, the check of the subscription says why.
func complete(ctx context.Context, s settings) (program.Use, error) {
	s, err := lookUp(ctx, s)
	if absent := new(check.AbsentError); errors.As(err, &absent) {
		return program.Use{}, err
	}
	u := s.use()
	u.Fault = s.validate()
	return u, nil
}
