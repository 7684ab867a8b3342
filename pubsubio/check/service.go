package check

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A service makes the calls of a check to one server, each of which changes nothing.
type service struct {
	conn     grpc.ClientConnInterface
	projects grpc.ClientConnInterface // to Resource Manager
	endpoint string
	patience time.Duration
	answered atomic.Bool // some call was: the service is there
	close    func()
}

// services are those that a check asks.
type services map[options.Connection]*service

// dialAll connects to the servers of subjects. A connection whose settings are at
// fault has none: Validate says so.
func dialAll(subjects []*subject, patience time.Duration) (services, error) {
	all := make(services)
	for _, s := range subjects {
		var f options.Faults
		s.connection.Faults(&f, "")
		if _, ok := all[s.connection]; ok || f.Err() != nil {
			continue
		}
		one, err := dial(s.connection, patience)
		if err != nil {
			return all, err
		}
		all[s.connection] = one
	}
	return all, nil
}

func (s services) close() {
	for _, one := range s {
		one.close()
	}
}

// resourceManager is where permissions on a project are asked for. An emulator is
// asked itself, and does not know.
const resourceManager = "cloudresourcemanager.googleapis.com:443"

func dial(c options.Connection, patience time.Duration) (*service, error) {
	conn, err := transport.Dial(c, transport.Settling)
	if err != nil {
		return nil, connectError(c, err)
	}
	about := c
	if c.EmulatorEndpoint == "" {
		about.Endpoint = resourceManager
	}
	projects, err := transport.Dial(about, transport.Settling)
	if err != nil {
		_ = conn.Close()
		return nil, connectError(c, err)
	}
	return &service{
		conn:     conn.ClientConn(),
		projects: projects.ClientConn(),
		endpoint: transport.Endpoint(c),
		patience: patience,
		close: func() { // Nothing is under way on them.
			_ = conn.Close()
			_ = projects.Close()
		},
	}, nil
}

// connectError says what is to be done about a connection that cannot be made: it is
// for want of credentials.
func connectError(c options.Connection, err error) error {
	switch {
	case c.ServiceAccountKeyFile != "":
		return fmt.Errorf("ServiceAccountKeyFile: %w", err)
	case c.EmulatorEndpoint != "":
		return err
	}
	return fmt.Errorf("no credentials to reach Pub/Sub with: %w; log in with gcloud auth application-default login, or give ServiceAccountKeyFile", err)
}

func (k *service) getSubscription(ctx context.Context, name string) (*pubsubpb.Subscription, error) {
	return ask(ctx, k, k.patience, func(ctx context.Context, opts ...grpc.CallOption) (*pubsubpb.Subscription, error) {
		return pubsubpb.NewSubscriberClient(k.conn).GetSubscription(transport.WithSubscription(ctx, name), &pubsubpb.GetSubscriptionRequest{Subscription: name}, opts...)
	})
}

func (k *service) getTopic(ctx context.Context, name string) (*pubsubpb.Topic, error) {
	return ask(ctx, k, k.patience, func(ctx context.Context, opts ...grpc.CallOption) (*pubsubpb.Topic, error) {
		return pubsubpb.NewPublisherClient(k.conn).GetTopic(transport.WithTopic(ctx, name), &pubsubpb.GetTopicRequest{Topic: name}, opts...)
	})
}

// consumed reports whether a topic has a subscription. Nothing depends on it but what is
// said, so that it is worth less patience.
func (k *service) consumed(ctx context.Context, topic string) (bool, error) {
	list, err := ask(ctx, k, k.patience/5, func(ctx context.Context, opts ...grpc.CallOption) (*pubsubpb.ListTopicSubscriptionsResponse, error) {
		return pubsubpb.NewPublisherClient(k.conn).ListTopicSubscriptions(transport.WithTopic(ctx, topic), &pubsubpb.ListTopicSubscriptionsRequest{Topic: topic, PageSize: 1}, opts...)
	})
	return len(list.GetSubscriptions()) > 0 || list.GetNextPageToken() != "", err
}

const (
	testOnResource = "/google.iam.v1.IAMPolicy/TestIamPermissions"
	testOnProject  = "/google.cloud.resourcemanager.v3.Projects/TestIamPermissions"
)

// granted returns which of the permissions the account has on a topic or a
// subscription; known is false where the server does not say, as Google's emulator.
func (k *service) granted(ctx context.Context, resource string, permissions []string) (granted func(string) bool, known bool) {
	return k.test(ctx, k.conn, testOnResource, resource, permissions)
}

// grantedOn is granted of a project.
func (k *service) grantedOn(ctx context.Context, project string, permissions []string) (granted func(string) bool, known bool) {
	return k.test(ctx, k.projects, testOnProject, project, permissions)
}

func (k *service) test(ctx context.Context, conn grpc.ClientConnInterface, method, resource string, permissions []string) (granted func(string) bool, known bool) {
	ctx, cancel := context.WithTimeout(transport.WithResource(ctx, resource), k.patience)
	defer cancel()
	// The messages of TestIamPermissions are on the wire what these are: a name and
	// texts, and texts. So their module need not be required for one method.
	request := &pubsubpb.AcknowledgeRequest{Subscription: resource, AckIds: permissions}
	response := new(pubsubpb.PublishResponse)
	if err := conn.Invoke(ctx, method, request, response); err != nil {
		return nil, false
	}
	return func(p string) bool { return slices.Contains(response.GetMessageIds(), p) }, true
}

// ask makes a call until it has an answer that stands, or patience has ended. The error is
// then the last status, from a service that has answered, if only this or another call with
// one that does not stand; it is an *AbsentError from one that never has, and where ctx has
// ended.
func ask[T any](ctx context.Context, k *service, patience time.Duration, call func(context.Context, ...grpc.CallOption) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	backoff := gax.Backoff{Initial: 100 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2}
	var last error
	for {
		var header, trailer metadata.MD
		answer, err := call(limited, grpc.Header(&header), grpc.Trailer(&trailer))
		// Who does not speak gRPC, and a connection that is not made, have no metadata. What
		// gRPC answers for a handler that is silent until the deadline is no answer either.
		spoken := err == nil || header.Len()+trailer.Len() > 0 && status.Code(err) != codes.DeadlineExceeded
		if spoken {
			k.answered.Store(true)
		}
		if err == nil || limited.Err() == nil && stands(limited, err, spoken) {
			return answer, err
		}
		// A call that the end of patience cuts off says less than the status before it.
		if last == nil || status.Code(err) != codes.DeadlineExceeded {
			last = err
		}
		if gax.Sleep(limited, backoff.Pause()) == nil {
			continue
		}
		if k.answered.Load() && ctx.Err() == nil {
			return answer, last
		}
		return answer, &AbsentError{Endpoint: k.endpoint, patience: k.patience, text: status.Convert(last).Message(), err: last}
	}
}

// stands reports whether the error of a call is an answer. Credentials that are
// refused are one to somebody who waits, if not to a job.
func stands(ctx context.Context, err error, spoken bool) bool {
	if status.Code(err) == codes.Unauthenticated {
		return true
	}
	return spoken && transport.Classify(ctx, err) != transport.Retryable
}
