package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fit"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// lookAtSubscription finds out what a subscription is, and what the account may do
// with it. The error says that the service is absent.
func (k *service) lookAtSubscription(ctx context.Context, s *subject) error {
	found, err := k.getSubscription(ctx, s.Name)
	if err := s.seen(ctx, err, s.create != nil); err != nil {
		return err
	}
	s.settle(iam.GetSubscription.Permission, looked(err))
	if err == nil {
		s.found, s.Topic = found, found.GetTopic()
	}
	k.askResource(ctx, s)
	return nil
}

// lookAtTopic is lookAtSubscription for a topic.
func (k *service) lookAtTopic(ctx context.Context, s *subject) error {
	found, err := k.getTopic(ctx, s.Name)
	if err := s.seen(ctx, err, s.creates); err != nil {
		return err
	}
	s.settle(iam.GetTopic.Permission, looked(err))
	if err == nil {
		s.describe(found)
		// Whatever the error, the service is there and the topic may be used.
		some, err := k.consumed(ctx, s.Name)
		switch {
		case ctx.Err() != nil:
			return err
		case err == nil && some:
			s.consumed = consumed
		case err == nil:
			s.consumed = unconsumed
		}
	}
	k.askResource(ctx, s)
	return nil
}

// seen notes what the answer to a look says of s. It returns an error only where there
// was none.
func (s *subject) seen(ctx context.Context, err error, created bool) error {
	var absent *AbsentError
	code := status.Code(err)
	switch {
	case errors.As(err, &absent):
		return err
	case err == nil:
		s.State = Exists
	case code == codes.NotFound && created:
		s.State = WillBeCreated
	case code == codes.NotFound:
		s.State = Missing
	case code == codes.PermissionDenied:
		s.State = Unseen
	case code == codes.Unauthenticated:
		s.State = Unknown
		s.find(Fault, fit.Fault{Text: "cannot be looked up: the credentials are not accepted: " + status.Convert(err).Message()})
	case code == codes.Unimplemented && s.Kind == "topic", transport.Classify(ctx, err) == transport.Retryable:
		// The service is busy, and a pipeline has more patience; or it has no call that only
		// a check makes, as some that stand in for it. A read looks its subscription up.
		s.State = Unknown
		s.find(Warning, fit.Fault{
			Text:   fmt.Sprintf("could not be looked up, and nothing of it was checked: %v", transport.Describe(err)),
			Remedy: "what is wrong with it, if anything, shows in the run",
		})
	default:
		s.State = Unknown
		s.find(Fault, fit.Fault{Text: fmt.Sprintf("cannot be looked up: %v", transport.Describe(err))})
	}
	return nil
}

// looked is what the answer to a look says of the permission to look.
func looked(err error) Status {
	switch status.Code(err) { //nolint:exhaustive // any other says nothing
	case codes.OK, codes.NotFound:
		return Granted
	case codes.PermissionDenied:
		return Lacking
	}
	return NotKnown
}

// askResource asks for the permissions on s that are not known yet, where there is
// something to ask about: of what does not exist the service says that none is granted.
func (k *service) askResource(ctx context.Context, s *subject) {
	if s.State != Exists && s.State != Unseen {
		return
	}
	var names []string
	for _, p := range s.Permissions {
		if p.On == s.Name && p.Status == NotKnown {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	granted, known := k.granted(ctx, s.Name, names)
	if !known {
		return
	}
	for _, name := range names {
		s.settle(name, statusOf(granted(name)))
	}
}

func statusOf(granted bool) Status {
	if granted {
		return Granted
	}
	return Lacking
}

// askProjects asks for the permissions on projects, once for each.
func (s *survey) askProjects(ctx context.Context, all services) {
	for k, names := range s.onProjects() {
		service := all[k.connection]
		if service == nil {
			continue
		}
		if granted, known := service.grantedOn(ctx, k.name, names); known {
			s.settleOn(k, granted)
		}
	}
}

// onProjects are the names of the permissions that are needed on projects.
func (s *survey) onProjects() map[key][]string {
	out := make(map[key][]string)
	for _, sub := range s.order {
		for _, p := range sub.Permissions {
			k := key{sub.connection, p.On}
			if p.On != sub.Name && !slices.Contains(out[k], p.Name) {
				out[k] = append(out[k], p.Name)
			}
		}
	}
	return out
}

// settleOn notes what the account has on a project, wherever that is needed.
func (s *survey) settleOn(project key, granted func(string) bool) {
	for _, sub := range s.order {
		for _, p := range sub.Permissions {
			if project == (key{sub.connection, p.On}) {
				sub.settle(p.Name, statusOf(granted(p.Name)))
			}
		}
	}
}
