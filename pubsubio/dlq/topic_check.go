package dlq

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fit"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

const (
	// checkPatience is how long a check may take. A bundle waits for it, and the flush
	// finds out the same.
	checkPatience = 10 * time.Second
	// checkAttempt is how long one of its calls may take.
	checkAttempt = 4 * time.Second
	// The pauses between calls double from the first to the last.
	firstCheckPause = 500 * time.Millisecond
	lastCheckPause  = 2 * time.Second
	// maxMissing is how often the topic may be told missing before it counts as such:
	// over 1.5 s, in which one that was created a moment ago is seen.
	maxMissing = 3
)

// topicCalls are what a check asks about one topic.
type topicCalls struct {
	exists func(ctx context.Context) error
	// consumed reports whether the topic has a subscription.
	consumed func(ctx context.Context) (bool, error)
}

// Check implements [Checker]: it looks up the topic, which needs pubsub.topics.get,
// as roles/pubsub.viewer has it. It is an error that the topic does not exist. A
// topic without a subscription is a warning, for what it gets is lost, and so is
// all that the account may not see, or that has no answer within ten seconds: a
// worker that may only publish is enough for the queue.
func (c Config) Check(ctx context.Context, _ string) error {
	conn, err := transport.Dial(c.connection(), transport.Publishing)
	if err != nil {
		return fmt.Errorf("dlq: dead-letter topic %s: %w", c.Topic, err)
	}
	defer func() { _ = conn.Close() }() // Nothing is under way on it.
	warning, err := c.look(ctx, c.calls(pubsubpb.NewPublisherClient(conn.ClientConn())))
	if warning != "" {
		log.Warnf(ctx, "dlq: dead-letter topic %s %s", c.Topic, warning)
	}
	return err
}

func (c Config) calls(client pubsubpb.PublisherClient) topicCalls {
	return topicCalls{
		exists: func(ctx context.Context) error {
			_, err := client.GetTopic(transport.WithTopic(ctx, c.Topic), &pubsubpb.GetTopicRequest{Topic: c.Topic})
			return err
		},
		consumed: func(ctx context.Context) (bool, error) {
			list, err := client.ListTopicSubscriptions(transport.WithTopic(ctx, c.Topic), &pubsubpb.ListTopicSubscriptionsRequest{Topic: c.Topic, PageSize: 1})
			return len(list.GetSubscriptions()) > 0 || list.GetNextPageToken() != "", err
		},
	}
}

// look returns what is to be warned of, if it is no error.
func (c Config) look(ctx context.Context, calls topicCalls) (warning string, err error) {
	patience, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	consumed := false
	err = try(patience, calls.exists)
	if err == nil {
		err = try(patience, func(ctx context.Context) (err error) {
			consumed, err = calls.consumed(ctx)
			return err
		})
	}
	switch {
	case status.Code(err) == codes.NotFound:
		return "", missing(c.Topic, err)
	case ctx.Err() != nil:
		return "", fmt.Errorf("dlq: look up dead-letter topic %s: %w", c.Topic, context.Cause(ctx))
	case err != nil:
		return fmt.Sprintf("could not be looked up: %s%s; assumed that it exists and has a subscription",
			transport.Describe(err), clause(transport.Remedy(err, iam.GetTopic))), nil
	case !consumed:
		return fit.LettersUnread(c.Topic).String(), nil
	}
	return "", nil
}

// try makes a call until it has an answer that stands, or ctx ends. It returns the
// last status that the service gave.
func try(ctx context.Context, call func(context.Context) error) error {
	var last error
	for pause, missed := firstCheckPause, 0; ; pause = min(2*pause, lastCheckPause) {
		attempt, cancel := context.WithTimeout(ctx, checkAttempt)
		err := call(attempt)
		cancel()
		if err == nil {
			return nil
		}
		// A call that the end of ctx cuts off says less than the status before it.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		switch transport.Classify(ctx, err) {
		case transport.Retryable:
		case transport.Missing:
			if missed++; missed == maxMissing {
				return last
			}
		default:
			return last
		}
		if gax.Sleep(ctx, pause) != nil {
			return last
		}
	}
}

// A topicError says what is the matter with a topic. It unwraps to the status.
type topicError struct {
	text string
	err  error
}

func (e *topicError) Error() string { return e.text }
func (e *topicError) Unwrap() error { return e.err }

// missing is the error of a topic that does not exist, as err says.
func missing(topic string, err error) error {
	return &topicError{text: fmt.Sprintf("dlq: dead-letter topic %s %v", topic, fit.LettersMissing(topic)), err: err}
}

// clause is a remedy as a text goes on with it.
func clause(remedy string) string {
	if remedy == "" {
		return ""
	}
	return "; " + remedy
}
