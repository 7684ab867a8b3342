package replay

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() { source.RegisterDecoder(decode) }

// A sorter decides about each letter and keeps the survey. It is the process's, because
// a decoder has a name only and no settings: the program runs where it was started.
type sorter struct {
	choice  choice
	topics  *topics
	parts   *parts
	survey  *survey
	lull    *lull
	enough  func() // ends the read
	dryRun  bool
	context context.Context //nolint:containedctx // that of the run, which a decoder is not given
}

func newSorter(run context.Context, s settings, enough func()) *sorter {
	return &sorter{
		choice:  s.choice(),
		topics:  &topics{connection: s.Connection},
		parts:   newParts(maxPartBytes),
		survey:  newSurvey(),
		lull:    &lull{length: s.idle},
		enough:  enough,
		dryRun:  s.DryRun,
		context: run,
	}
}

// sort returns what becomes of a letter that the service has published then: the message
// that is published, or nil where it is left.
func (s *sorter) sort(e dlq.Entry, published time.Time) *routed.Message {
	isNew := s.choice.isNew(e, published)
	if s.lull.over(isNew, time.Now()) {
		s.enough()
	}
	if isNew {
		if e.Part != nil {
			s.parts.newer(e.Part.ID)
		}
		s.survey.add(e, "", "not there when the replay began")
		return nil
	}
	part := e.Part
	if why := s.choice.unwanted(e); why == "" && part != nil {
		whole, why := s.parts.add(e)
		if whole == nil {
			if why != "" {
				s.survey.add(e, "", why)
			}
			return nil
		}
		e = *whole
	}
	topic, why := s.choice.topicOf(e)
	if why == "" {
		why = s.topics.unusable(s.context, topic)
	}
	if why != "" {
		s.survey.add(e, "", why)
		return nil
	}
	s.survey.add(e, topic, "")
	if s.dryRun {
		return nil
	}
	if part != nil {
		s.parts.published(part.ID, e.ID)
	}
	return &routed.Message{Topic: topic, Message: e.Replay()}
}

// current is the sorter of the run in this process.
var current atomic.Pointer[sorter]

// errLeft refuses a letter that is not replayed: source.Leave keeps it in the
// subscription. Nobody reads its text, the survey has the reason.
var errLeft = errors.New("replay: the letter is left in the subscription")

// decode emits the message of a letter that is replayed, and refuses any other.
func decode(m *message.Message, emit func(routed.Message)) error {
	s := current.Load()
	if s == nil {
		return errors.New("replay: no replay runs in this process")
	}
	out := s.sort(dlq.Decode(m), m.PublishTime)
	if out == nil {
		return errLeft
	}
	emit(*out)
	return nil
}

// build adds the replay to scope. Read, decision and publication are steps of one
// bundle: a letter is acknowledged once its bundle has committed, which is when its
// message is published, or again in the dead-letter topic.
func build(scope beam.Scope, s settings) error {
	letters, err := source.TryRead(scope, sourceConfig(s), decode)
	if err != nil || s.DryRun {
		return err
	}
	_, err = sink.TryWrite(scope, sinkConfig(s), routed.Encode, letters)
	return err
}

// maxHold is for how long a letter is nobody's after a run that was killed.
const maxHold = 20 * time.Second

func sourceConfig(s settings) source.Config {
	c := source.Config{
		Limit:                 options.Limit{StopWhenIdle: s.idle, MaxDuration: s.duration},
		OnDecodeFailure:       source.Leave(),
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
		// Of what is left only ids are kept, so its bytes cost nothing.
		Subscriber: options.Subscriber{
			MaxOutstandingMessages: s.maxLeft,
			MaxOutstandingBytes:    1 << 50,
			// What a run holds that is killed is there again for the next, which
			// --stop_when_idle has wait for it.
			MaxExtensionPeriod: maxHold,
		},
	}
	if s.subscription != "" {
		c.Subscriptions = source.From(s.subscription)
	}
	return c
}

// sinkConfig is that of the replayed messages. A key's messages keep the key; which of
// them comes first is not known any more.
func sinkConfig(s settings) sink.Config {
	return sink.Config{
		Resolve:           routed.Resolve(),
		CreateDisposition: options.CreateNever,
		// Whatever fails again is in a queue again, however many in a row: a bundle that
		// failed for it would have its letters twice.
		Publisher:             options.Publisher{EnableMessageOrdering: true, MaxConsecutiveRejections: options.Unbounded},
		OnFailure:             sink.SendTo(s.queue()),
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
	}
}

// queue is where messages go that fail again: back to where they came from.
func (s settings) queue() dlq.Config {
	return dlq.Config{
		Topic:                 s.queueTopic,
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
	}
}
