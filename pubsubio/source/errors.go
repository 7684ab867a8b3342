package source

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// errFenced ends an attempt that a newer claim of its reader has overtaken: the
// runner gave the restriction to another bundle, so whatever this one emits is
// void.
var errFenced = errors.New("source: another bundle has claimed this restriction's reader; this bundle is void and its messages are returned")

// errEnded says that a reader is no longer in use; the caller asks the group for
// a new one.
var errEnded = errors.New("source: the reader has ended")

// errRunEnded ends a bundle that starts after its run has ended in this process.
var errRunEnded = errors.New("source: the run has ended; this bundle is void")

// callError says what a failed call about a subscription means and what mends
// it. It wraps err, so that status.Code sees the service's answer.
func callError(act, subscription string, err error) error {
	remedy := transport.Remedy(err, iam.Consume)
	if remedy != "" {
		remedy = "; " + remedy
	}
	return &subscriptionError{
		text: fmt.Sprintf("source: %s %s: %s%s", act, subscription, transport.Describe(err), remedy),
		err:  err,
	}
}

// errDeleted says that a subscription is gone that the service knew before.
func errDeleted(subscription string, err error) error {
	return &subscriptionError{
		text: fmt.Sprintf("source: pull from %s: %s; the subscription was deleted while it was read, and what it had not delivered is lost with it; "+
			"if it was created again, that is another one, which has none of it: start the job anew to read that", subscription, transport.Describe(err)),
		err: err,
	}
}

type subscriptionError struct {
	text string
	err  error
}

func (e *subscriptionError) Error() string { return e.text }
func (e *subscriptionError) Unwrap() error { return e.err }

// errUnconfirmed says that acknowledgements have no answer in time; last is that of
// the last attempt, nil where none has come at all.
func errUnconfirmed(subscription string, messages int, limit time.Duration, last error) error {
	act := fmt.Sprintf("confirm within %v (options.Subscriber.AwaitAckConfirmation) the acknowledgement of %d messages of", limit, messages)
	if last == nil {
		last = status.Error(codes.DeadlineExceeded, "no answer")
	}
	return callError(act, subscription, last)
}

// errAllAside says that so much was left for others that the service sends nothing more.
func errAllAside(subscription string, messages int, bytes int64) error {
	return fmt.Errorf("source: %s: %d messages of %d bytes are left for others (OnDecodeFailure source.Leave()), which is all that the service sends before some are acknowledged: "+
		"raise options.Subscriber.MaxOutstandingMessages and MaxOutstandingBytes above what is to be left, or leave less", subscription, messages, bytes)
}

// errNeverCommitted says that the runner does not do what acknowledging needs.
func errNeverCommitted(subscription string, messages int, limit time.Duration) error {
	return fmt.Errorf("source: %s: %d emitted messages have waited %v for a bundle to be finalized, and none ever was: "+
		"this runner does not finalize bundles, so nothing can be acknowledged (on Flink, checkpointing must be on); "+
		"options.Subscriber.FirstCommitTimeout sets how long to wait", subscription, messages, limit)
}
