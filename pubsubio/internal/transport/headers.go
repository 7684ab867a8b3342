package transport

import (
	"context"
	"net/url"

	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// version is what this project calls itself towards the service.
const version = "0.1.0"

const userAgent = "beam-pubsub-go/" + version

var apiClient = gax.XGoogHeader("gl-go", gax.GoVersion, "beam-pubsub-go", version, "grpc", grpc.Version)

// WithTopic returns a context for calls about the topic of that full name: it
// carries the header by which the service routes them. Use it once for many
// calls.
func WithTopic(ctx context.Context, name string) context.Context {
	return withParams(ctx, "topic", name)
}

// WithSubscription is WithTopic for calls about a subscription.
func WithSubscription(ctx context.Context, name string) context.Context {
	return withParams(ctx, "subscription", name)
}

// WithResource is WithTopic for calls about who may do what with anything.
func WithResource(ctx context.Context, name string) context.Context {
	return withParams(ctx, "resource", name)
}

// WithName returns a context for a call that creates the resource of that full
// name: its header takes the place of the one that ctx has.
func WithName(ctx context.Context, name string) context.Context {
	headers, _ := metadata.FromOutgoingContext(ctx)
	headers.Set("x-goog-request-params", "name="+url.QueryEscape(name)) // FromOutgoingContext copies
	return metadata.NewOutgoingContext(ctx, headers)
}

func withParams(ctx context.Context, field, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx,
		"x-goog-api-client", apiClient,
		"x-goog-request-params", field+"="+url.QueryEscape(name))
}
