package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// checkPatience is how long a check goes on asking a service that cannot be reached,
// or is busy. It is for somebody who waits in front of a screen: a source and a sink
// have much more.
const checkPatience = 5 * time.Second

// A Resource is a topic or a subscription that a program is about to use.
type Resource struct {
	// Name is its full name, which is known to be well formed.
	Name string
	// Flag is the flag that names it, as "--topic".
	Flag string
	// Subscription is set for a subscription.
	Subscription bool
	// Created is set where a topic that is missing will be created.
	Created bool
	// Ordered is set where a subscription must have message ordering.
	Ordered bool
}

func (r Resource) kind() string {
	if r.Subscription {
		return "subscription"
	}
	return "topic"
}

// needs is what the account must be granted on r, and looks what it takes to look r
// up.
func (r Resource) needs() (permission, role, looks string) {
	if r.Subscription {
		return "pubsub.subscriptions.consume", "roles/pubsub.subscriber", "pubsub.subscriptions.get"
	}
	return "pubsub.topics.publish", "roles/pubsub.publisher", "pubsub.topics.get"
}

// A Finding is what a check says of a resource that can be used.
type Finding struct {
	Resource Resource
	// Says is what was found, and what was assumed where the account may not look.
	Says string
}

// Check asks the service whether the resources are there and may be used, as far as
// the account may ask, and changes nothing. The error joins all that is wrong, each
// fault with what mends it. A service that cannot be reached is given five seconds.
//
// A program checks before it runs: a source and a sink wait for minutes for a service
// that may come back, which is right for a job and wrong for a mistyped endpoint.
func Check(ctx context.Context, c options.Connection, resources ...Resource) ([]Finding, error) {
	conn, err := dial(ctx, c)
	if err != nil {
		return nil, err
	}
	k := checker{conn: conn, endpoint: endpoint(c)}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	var findings []Finding
	var faults []error
	for _, r := range resources {
		says, err := k.check(ctx, r)
		var absent *AbsentError
		if errors.As(err, &absent) {
			return nil, err // Nothing can be said of the others either.
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s %s %w", r.Flag, r.kind(), r.Name, err))
			continue
		}
		findings = append(findings, Finding{r, says})
	}
	return findings, errors.Join(faults...)
}

// An AbsentError says that the service has not answered: nothing can be said of what was
// asked for.
type AbsentError struct {
	endpoint string
	err      error // of the last try
}

func (e *AbsentError) Error() string {
	return fmt.Sprintf("Pub/Sub at %s has not answered within %v: %s; check that it runs and can be reached, and --emulator_endpoint and --pubsub_endpoint",
		e.endpoint, checkPatience, status.Convert(e.err).Message())
}

func (e *AbsentError) Unwrap() error { return e.err }

// A checker makes the calls of a check.
type checker struct {
	conn     grpc.ClientConnInterface
	endpoint string
}

// check returns what is to be said of r, or as an error what is wrong with it: the
// end of a sentence that begins with its name.
func (k checker) check(ctx context.Context, r Resource) (says string, err error) {
	permission, role, looks := r.needs()
	faults, err := k.look(ctx, r)
	says = "exists"
	switch code := status.Code(err); {
	case err == nil:
	case code == codes.NotFound && r.Created:
		return "does not exist and will be created", nil
	case code == codes.NotFound:
		return "", fmt.Errorf("does not exist%s", remedyForMissing(r))
	case code == codes.PermissionDenied:
		says = "is taken to exist, as the account may not look (" + looks + ")"
	case code == codes.Unauthenticated:
		return "", fmt.Errorf("cannot be looked up: the credentials are not accepted: %s", status.Convert(err).Message())
	default:
		var absent *AbsentError
		if errors.As(err, &absent) {
			return "", err
		}
		return "", fmt.Errorf("cannot be looked up: %v: %s", code, status.Convert(err).Message())
	}
	if faults != nil {
		return "", faults
	}
	granted, known := k.granted(ctx, r.Name, permission)
	switch {
	case !known:
		return says + "; whether the account has " + permission + " is not known", nil
	case !granted:
		return "", fmt.Errorf("may not be used: the account lacks %s; grant %s", permission, role)
	}
	return says + "; " + permission + " is granted", nil
}

func remedyForMissing(r Resource) string {
	if r.Subscription {
		return "; create it with gcloud pubsub subscriptions create"
	}
	return "; create it with gcloud pubsub topics create"
}

// look looks r up. faults say what about it keeps it from being used as r says; err
// is the status of the call.
func (k checker) look(ctx context.Context, r Resource) (faults, err error) {
	if !r.Subscription {
		return nil, k.persist(ctx, func(ctx context.Context) error {
			_, err := pubsubpb.NewPublisherClient(k.conn).GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: r.Name})
			return err
		})
	}
	var found *pubsubpb.Subscription
	err = k.persist(ctx, func(ctx context.Context) (err error) {
		found, err = pubsubpb.NewSubscriberClient(k.conn).GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: r.Name})
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case r.Ordered && !found.GetEnableMessageOrdering():
		return errors.New("has no message ordering, which cannot be added: create another one with --enable-message-ordering, or read without --ordering"), nil
	case found.GetDetached():
		return errors.New("is detached from its topic and gets no messages: create another one"), nil
	case found.GetPushConfig().GetPushEndpoint() != "":
		return errors.New("delivers by push, so that nothing can be pulled from it: create another one"), nil
	case found.GetEnableExactlyOnceDelivery():
		return errors.New("has exactly-once delivery: turn it off with gcloud pubsub subscriptions update --no-enable-exactly-once-delivery"), nil
	}
	return nil, nil
}

// granted reports whether the account has a permission; known is false where the
// server does not say, as Google's emulator.
func (k checker) granted(ctx context.Context, resource, permission string) (granted, known bool) {
	// The messages of google.iam.v1.IAMPolicy/TestIamPermissions are on the wire what
	// these are: a name and texts, and texts. So its module need not be required for
	// one method.
	request := &pubsubpb.AcknowledgeRequest{Subscription: resource, AckIds: []string{permission}}
	var response pubsubpb.PublishResponse
	if err := k.conn.Invoke(ctx, "/google.iam.v1.IAMPolicy/TestIamPermissions", request, &response); err != nil {
		return false, false
	}
	return slices.Contains(response.GetMessageIds(), permission), true
}

// persist makes a call until it has an answer, or ctx ends, which is an AbsentError
// then.
func (k checker) persist(ctx context.Context, call func(context.Context) error) error {
	backoff := gax.Backoff{Initial: 100 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2}
	var last error
	for {
		err := call(ctx)
		switch status.Code(err) {
		case codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.Internal, codes.DeadlineExceeded:
		default:
			return err
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if gax.Sleep(ctx, backoff.Pause()) != nil {
			return &AbsentError{k.endpoint, last}
		}
	}
}
