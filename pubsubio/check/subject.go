package check

import (
	"slices"
	"strings"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fit"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/gcloud"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// A key tells resources apart: the same name on another server is another one.
type key struct {
	connection options.Connection
	name       string
}

// A subject is a resource on its way through a check. Only one goroutine has it at a
// time.
type subject struct {
	Resource
	connection options.Connection
	member     string

	// Of a subscription.
	reads  []reading
	found  *pubsubpb.Subscription // as the service describes it; nil while that is not known
	create *options.SubscriptionCreate

	// Of a topic.
	publishers []sink.Config
	letters    bool        // of a queue
	creates    bool        // some sink creates it where it is missing
	readBy     []string    // subscriptions that are read
	chosen     bool        // all that read them leave what they do not choose
	attach     []string    // subscriptions that will be created on it
	forwards   []forwarder // subscriptions whose dead-letter policy it is in
	consumed   consumption
}

// A reading is what one source does with a subscription.
type reading struct {
	config       source.Config
	subscription source.Subscription
}

// needs is what the source asks of the subscription.
func (r reading) needs() fit.Read {
	n := fit.Read{
		Ordered: r.config.Ordering == options.PerKey,
		Nacks:   r.config.OnDecodeFailure == source.Nack(),
	}
	if q := r.config.OnDecodeFailure.Queue(); usable(q) {
		n.Letters = topicOf(q)
	}
	return n
}

// A forwarder is a subscription that has a dead-letter policy, or will have.
type forwarder struct {
	name     string
	toCreate bool
}

// A consumption says whether a topic has a subscription.
type consumption int

const (
	notAsked consumption = iota
	consumed
	unconsumed
)

// use notes what s is for, once for each field.
func (s *subject) use(field, what string) {
	u := Use{Field: field, What: what}
	if !slices.Contains(s.Uses, u) {
		s.Uses = append(s.Uses, u)
	}
}

// need notes a permission of which nothing is known yet.
func (s *subject) need(g iam.Grant, what string, optional bool) {
	on := s.Name
	if g.Project {
		on = strings.Join(strings.SplitN(s.Name, "/", 3)[:2], "/")
	}
	for i, p := range s.Permissions {
		if p.Name == g.Permission {
			s.Permissions[i].Optional = p.Optional && optional
			if !strings.Contains(p.For, what) {
				s.Permissions[i].For += ", " + what
			}
			return
		}
	}
	s.Permissions = append(s.Permissions, Permission{Name: g.Permission, On: on, For: what, Role: g.Role, Optional: optional, Status: NotKnown})
}

// settle notes whether the account has a permission.
func (s *subject) settle(name string, status Status) {
	for i := range s.Permissions {
		p := &s.Permissions[i]
		if p.Name != name {
			continue
		}
		p.Status = status
		if status == Lacking {
			p.Command = gcloud.Bind(s.Name, iam.Grant{Permission: p.Name, Role: p.Role, Project: p.On != s.Name}, s.member)
		}
	}
}

// find notes a finding, once: two sources may find the same.
func (s *subject) find(level Level, f fit.Fault) {
	if !slices.ContainsFunc(s.Findings, func(g Finding) bool { return g.Level == level && g.Text == f.Text }) {
		s.Findings = append(s.Findings, Finding{Level: level, Text: f.Text, Remedy: f.Remedy, Commands: f.Commands})
	}
}
