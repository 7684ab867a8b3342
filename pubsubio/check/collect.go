package check

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// A survey is what configurations use, and what was found of it.
type survey struct {
	member   string
	settings []Finding
	subjects map[key]*subject
	order    []*subject
}

// collect notes what the configurations name.
func (s *survey) collect(c Configs) {
	for i, cfg := range c.Sources {
		s.source(numbered("source.Config", i), cfg)
	}
	for i, cfg := range c.Sinks {
		s.sink(numbered("sink.Config", i), cfg)
	}
	for i, cfg := range c.Queues {
		in := numbered("dlq.Config", i)
		s.validate("dlq.Config", in, cfg.Validate())
		s.letters(cfg, in+".Topic")
	}
}

// numbered names the configuration of that number, the first by its type alone.
func numbered(name string, i int) string {
	if i == 0 {
		return name
	}
	return fmt.Sprintf("%s[%d]", name, i)
}

// validate notes each of the faults that are joined in err; name is what they call the
// configuration, in what it is called here.
func (s *survey) validate(name, in string, err error) {
	if err == nil {
		return
	}
	faults := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		faults = joined.Unwrap()
	}
	for _, f := range faults {
		s.settings = append(s.settings, Finding{Level: Fault, Text: strings.ReplaceAll(f.Error(), name+".", in+".")})
	}
}

func (s *survey) source(in string, c source.Config) {
	s.validate("source.Config", in, c.Validate())
	connection := options.Connection{EmulatorEndpoint: c.EmulatorEndpoint, Endpoint: c.Endpoint, ServiceAccountKeyFile: c.ServiceAccountKeyFile}
	for i, sub := range c.Subscriptions {
		if _, err := message.ParseSubscription(sub.Name); err != nil {
			continue // Validate says so.
		}
		r := s.subject(connection, "subscription", sub.Name)
		r.use(fmt.Sprintf("%s.Subscriptions[%d]", in, i), "read")
		r.reads = append(r.reads, reading{c, sub})
		if sub.Create != nil {
			r.create = sub.Create
		}
		r.need(iam.Consume, "reading", false)
		if _, moves := c.StartPosition.SeekTime(); moves {
			r.need(iam.Consume, "moving it to the start position", false)
		}
		r.need(iam.GetSubscription, "looking at it before it is read", true)
		if sub.Own() {
			r.need(iam.DeleteSubscription, "deleting it at the end of a local run", true)
		}
	}
	s.queue(c.OnDecodeFailure.Queue(), in+".OnDecodeFailure")
}

func (s *survey) sink(in string, c sink.Config) {
	s.validate("sink.Config", in, c.Validate())
	if c.Resolve != (sink.Resolver{}) {
		s.settings = append(s.settings, Finding{Level: Note, Text: in + ".Resolve: " + resolves(c)})
	}
	if _, err := message.ParseTopic(c.Topic); err == nil {
		t := s.subject(options.Connection{EmulatorEndpoint: c.EmulatorEndpoint, Endpoint: c.Endpoint, ServiceAccountKeyFile: c.ServiceAccountKeyFile}, "topic", c.Topic)
		t.use(in+".Topic", "published to")
		t.publishers = append(t.publishers, c)
		t.creates = t.creates || c.CreateDisposition == options.CreateIfNeeded
		t.need(iam.Publish, "publishing", false)
	}
	s.queue(c.OnFailure.Queue(), in+".OnFailure")
}

// resolves says what is not known of the topics that a function chooses.
func resolves(c sink.Config) string {
	text := fmt.Sprintf("the topics are not known before the pipeline runs, for %v chooses that of each record; the account needs %s on each of them, as %s has it", c.Resolve, iam.Publish.Permission, iam.Publish.Role)
	if c.CreateDisposition == options.CreateIfNeeded {
		text += fmt.Sprintf(", and %s on the project of each that is missing, as %s has it", iam.CreateTopic.Permission, iam.CreateTopic.Role)
	}
	return text
}

// queue notes a dead-letter queue, if there is one. One of another type knows by itself
// what it needs.
func (s *survey) queue(q dlq.Queue, field string) {
	if !usable(q) {
		return
	}
	switch c := q.(type) {
	case dlq.Config:
		s.letters(c, field)
	case *dlq.Config:
		s.letters(*c, field)
	default:
		s.settings = append(s.settings, Finding{Level: Note, Text: fmt.Sprintf("%s: a queue of type %T, of which nothing is known here", field, q)})
	}
}

// letters notes the topic of a queue over Pub/Sub.
func (s *survey) letters(c dlq.Config, field string) {
	if _, err := message.ParseTopic(c.Topic); err != nil {
		return // Validate says so.
	}
	t := s.subject(connectionOf(c), "topic", c.Topic)
	t.use(field, "sent dead letters")
	t.letters = true
	t.need(iam.Publish, "sending dead letters", false)
	t.need(iam.GetTopic, "looking at it before a job depends on it", true)
}

// usable reports whether q is a queue that can be asked: a nil pointer is none.
func usable(q dlq.Queue) bool {
	if q == nil {
		return false
	}
	v := reflect.ValueOf(q)
	return v.Kind() != reflect.Pointer || !v.IsNil()
}

func topicOf(q dlq.Queue) string { return dlq.TopicOf(q) }

// subject returns the resource of that name, which is well formed.
func (s *survey) subject(c options.Connection, kind, name string) *subject {
	k := key{c, name}
	if r, ok := s.subjects[k]; ok {
		return r
	}
	r := &subject{Resource: Resource{Kind: kind, Name: name}, connection: c, member: s.member}
	s.subjects[k] = r
	s.order = append(s.order, r)
	return r
}

// of returns the subjects of a kind.
func (s *survey) of(kind string) []*subject {
	var out []*subject
	for _, r := range s.order {
		if r.Kind == kind {
			out = append(out, r)
		}
	}
	return out
}

func (s *survey) report() Report {
	r := Report{Settings: s.settings, Resources: make([]Resource, 0, len(s.order))}
	for _, sub := range s.order {
		r.Resources = append(r.Resources, sub.Resource)
	}
	return r
}
