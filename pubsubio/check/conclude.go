package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fit"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/gcloud"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// follow says what was found of the subscriptions, and notes the topics to which they
// lead.
func (s *survey) follow() {
	for _, sub := range s.of("subscription") {
		sub.judge()
		switch {
		case sub.found != nil:
			s.topicOfFound(sub)
		case sub.create != nil && (sub.State == WillBeCreated || sub.State == Unseen):
			s.topicOfCreated(sub)
		}
	}
}

// topicOfFound notes the topics of a subscription that exists.
func (s *survey) topicOfFound(sub *subject) {
	at := sub.Uses[0].Field
	sub.MaxDeliveryAttempts = int(sub.found.GetDeadLetterPolicy().GetMaxDeliveryAttempts())
	if t := s.topic(sub, sub.found.GetTopic()); t != nil {
		t.use(at, "the topic of "+sub.Name)
		t.chosen = sub.leaves() && (len(t.readBy) == 0 || t.chosen)
		t.readBy = append(t.readBy, sub.Name)
	}
	if t := s.topic(sub, sub.found.GetDeadLetterPolicy().GetDeadLetterTopic()); t != nil {
		t.use(at, "forwarded what "+sub.Name+" gives up")
		t.forwards = append(t.forwards, forwarder{name: sub.Name})
	}
}

// leaves reports whether all reads of a subscription choose what they take, as a replay
// of dead letters does: what is sent back to them is not taken again unseen.
func (s *subject) leaves() bool {
	return !slices.ContainsFunc(s.reads, func(r reading) bool { return r.config.OnDecodeFailure != source.Leave() })
}

// topicOfCreated notes the topics of a subscription that is to be created.
func (s *survey) topicOfCreated(sub *subject) {
	at := sub.Uses[0].Field + ".Create"
	sub.need(iam.CreateSubscription, "creating it", false)
	if t := s.topic(sub, sub.create.Topic); t != nil {
		t.use(at+".Topic", "the topic of "+sub.Name+", which will be created")
		t.attach = append(t.attach, sub.Name)
		t.need(iam.AttachSubscription, "creating "+sub.Name, false)
	}
	if p := sub.create.DeadLetterPolicy; p != nil {
		if t := s.topic(sub, p.Topic); t != nil {
			t.use(at+".DeadLetterPolicy.Topic", "forwarded what "+sub.Name+" gives up")
			t.forwards = append(t.forwards, forwarder{name: sub.Name, toCreate: true})
		}
	}
}

// topic returns a topic on the server of a subscription, nil where name is none.
func (s *survey) topic(of *subject, name string) *subject {
	if _, err := message.ParseTopic(name); err != nil {
		return nil // none, or deleted
	}
	return s.subject(of.connection, "topic", name)
}

// judge says what is wrong with a subscription, and what is good to know of it.
func (s *subject) judge() {
	switch s.State {
	case Missing:
		command := gcloud.CreateSubscription(s.Name, options.SubscriptionCreate{Topic: "TOPIC", EnableMessageOrdering: s.reads[0].needs().Ordered})
		s.find(Fault, fit.Fault{Text: "does not exist", Remedy: "create it with " + command, Commands: []string{command}})
	case Unseen:
		for _, r := range s.reads {
			s.find(Note, fit.Fault{Text: "may not be looked up, so nothing of it was checked; a read assumes that it " + r.needs().Assumed()})
		}
	case Exists:
		for _, r := range s.reads {
			for _, f := range r.needs().Faults(s.found) {
				s.find(Fault, f)
			}
			r.hints(s)
		}
	case WillBeCreated, Unknown:
	}
}

// hints says what is good to know of a subscription that is there.
func (r reading) hints(s *subject) {
	found := s.found
	if f := found.GetFilter(); f != "" {
		s.find(Note, fit.Fault{Text: fmt.Sprintf("has the filter %s: the service acknowledges what does not match, and nobody reads it", f)})
	}
	if c := r.subscription.Create; c != nil {
		if t := found.GetTopic(); t != c.Topic && t != fit.DeletedTopic {
			s.find(Warning, fit.Fault{Text: fmt.Sprintf("is one of %s, and not of %s as Create says: what is there already stays as it is", t, c.Topic), Remedy: "read another subscription, or name that topic"})
		}
		if c.Filter != found.GetFilter() {
			s.find(Warning, fit.Fault{Text: fmt.Sprintf("has not the filter %q that Create says: what is there already stays as it is", c.Filter), Remedy: "read another subscription, or name its filter"})
		}
	}
	r.positionHints(s)
	if letters := found.GetDeadLetterPolicy().GetDeadLetterTopic(); letters != "" {
		s.find(Note, fit.Fault{
			Text:     fmt.Sprintf("forwards to %s what was delivered %d times, for which the service's own account needs grants that cannot be asked for here", letters, found.GetDeadLetterPolicy().GetMaxDeliveryAttempts()),
			Remedy:   "if messages are delivered more often than that, grant them",
			Commands: fit.Forwards(s.Name, letters),
		})
	}
}

// positionHints says what a start position cannot find.
func (r reading) positionHints(s *subject) {
	to, moves := r.config.StartPosition.SeekTime()
	if !moves || to.IsZero() || !to.Before(time.Now()) {
		return
	}
	position := "StartPosition " + r.config.StartPosition.String()
	kept := s.found.GetTopicMessageRetentionDuration().AsDuration()
	if s.found.GetRetainAckedMessages() {
		kept = max(kept, s.found.GetMessageRetentionDuration().AsDuration())
	}
	if kept == 0 {
		s.find(Note, fit.Fault{Text: "keeps no acknowledged messages, so that " + position + " finds only those that are not acknowledged",
			Remedy: "to have it keep them from now on, update it", Commands: []string{gcloud.UpdateSubscription(s.Name, "--retain-acked-messages")}})
	} else if oldest := time.Now().Add(-kept); to.Before(oldest) && to.Unix() > 0 {
		s.find(Note, fit.Fault{Text: fmt.Sprintf("keeps acknowledged messages for %v, less than %s goes back", kept, position)})
	}
}

// describe says what is good to know of a topic.
func (s *subject) describe(t *pubsubpb.Topic) {
	if state := t.GetState(); state != pubsubpb.Topic_ACTIVE && state != pubsubpb.Topic_STATE_UNSPECIFIED {
		s.find(Warning, fit.Fault{Text: "is in state " + state.String() + ", in which it takes in nothing from where it is to", Remedy: "mend what the service tells of it"})
	}
	if schema := t.GetSchemaSettings().GetSchema(); schema != "" && len(s.publishers) > 0 {
		s.find(Note, fit.Fault{Text: fmt.Sprintf("has the schema %s (%v): a message that breaks it is refused, and goes where OnFailure says", schema, t.GetSchemaSettings().GetEncoding())})
	}
}

// conclude says what is wrong with topics, once all are known.
func (s *survey) conclude() {
	for _, t := range s.of("topic") {
		switch t.State {
		case Missing, WillBeCreated:
			t.missing()
		case Exists:
			t.unread()
		case Unseen, Unknown:
		}
		t.circles()
		if t.State == WillBeCreated {
			t.need(iam.CreateTopic, "creating it", false)
		}
	}
}

// missing says what keeps from being done that a topic does not exist.
func (s *subject) missing() {
	create := gcloud.CreateTopic(s.Name, options.TopicCreate{})
	if len(s.publishers) > 0 {
		create = gcloud.CreateTopic(s.Name, s.publishers[0].TopicCreate)
	}
	switch {
	case s.letters:
		s.find(Fault, fit.LettersMissing(s.Name))
	case len(s.attach) > 0:
		s.find(Fault, fit.Fault{Text: "does not exist, so that no subscription of it can be created", Remedy: "create it with " + create, Commands: []string{create}})
	case len(s.publishers) > 0 && s.State == Missing:
		s.find(Fault, fit.Fault{Text: "does not exist", Remedy: "create it with " + create, Commands: []string{create}})
	}
	if s.State == WillBeCreated && len(s.attach) == 0 {
		s.find(Note, fit.Fault{Text: "will have no subscription when it is created: who subscribes later does not get what is published before"})
	}
	for _, f := range s.forwards {
		level, text := Warning, "does not exist, so that "+f.name+" forwards nothing to it"
		if f.toCreate {
			level, text = Fault, "does not exist, so that "+f.name+", whose dead letters it is to get, cannot be created"
		}
		s.find(level, fit.Fault{Text: text, Remedy: fit.LettersMissing(s.Name).Remedy, Commands: fit.LettersMissing(s.Name).Commands})
	}
}

// unread says that nobody gets what a topic gets.
func (s *subject) unread() {
	if s.consumed != unconsumed || len(s.attach) > 0 {
		return
	}
	s.Unread = true
	switch {
	case s.letters || len(s.forwards) > 0:
		s.find(Warning, fit.LettersUnread(s.Name))
	case len(s.publishers) > 0:
		s.find(Note, fit.Fault{Text: "has no subscription: who subscribes later does not get what is published before"})
	}
}

// circles says that what is read comes from what is written.
func (s *subject) circles() {
	from := slices.Concat(s.readBy, s.attach)
	if len(from) == 0 {
		return
	}
	text := "is the topic of " + strings.Join(from, " and ") + ", which is read"
	if len(s.publishers) > 0 {
		s.find(Warning, fit.Fault{Text: text + ": what is published to it is read again, for ever unless the pipeline stops it", Remedy: "publish to another topic, or read a subscription of another one"})
	}
	if s.letters && !s.chosen {
		s.find(Warning, fit.Fault{Text: text + ": its dead letters are read again", Remedy: "send them to another topic"})
	}
	for _, f := range s.forwards {
		if slices.Contains(from, f.name) {
			s.find(Warning, fit.Fault{Text: text + ": what " + f.name + " gives up comes to it again", Remedy: "forward it to another topic"})
		}
	}
}
