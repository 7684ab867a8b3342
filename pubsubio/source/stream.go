package source

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

const (
	// missingGrace is how long a subscription may be unknown to the service
	// before it counts as missing: a new one takes a moment to be seen
	// everywhere.
	missingGrace = 10 * time.Second
	// missingPause is how often it is looked for until then.
	missingPause = missingGrace / 4
	// reopenMin is the least time between two openings of a stream, so that no
	// status and no server can make a hot loop.
	reopenMin = time.Second
	// reopenMax is the longest pause between two openings.
	reopenMax = 10 * time.Second
	// steady is how long a stream must have lasted to count as having worked,
	// where it brought nothing.
	steady = 10 * time.Second
)

// A stream is one of a reader's streaming pulls, and stays the same each time it is
// opened again. The streams of a reader share its buffer, its leases and its
// budget, and nothing else: one may be refused while the others go on.
type stream struct {
	reader *reader
	// first is its first request, made anew each time.
	first *pubsubpb.StreamingPullRequest
	pulse pulse
	// response is the latest one, of the goroutine that reads them.
	response response

	// The reader's mutex guards all below.
	state streamState
}

// newStreams returns the streams of a reader. Each has a part of the budget, as the
// service counts what a stream holds by itself, and a client id of its own, which
// stays the same each time that it is opened again: that keeps the affinity which
// the service has given to it.
func newStreams(r *reader, first *pubsubpb.StreamingPullRequest) []*stream {
	o := r.config.Subscriber
	streams := make([]*stream, o.Streams)
	for i := range streams {
		request := proto.Clone(first).(*pubsubpb.StreamingPullRequest)
		if i > 0 {
			request.ClientId = fmt.Sprintf("%s-%d", first.GetClientId(), i)
		}
		request.MaxOutstandingMessages = part(int64(o.MaxOutstandingMessages), i, o.Streams)
		request.MaxOutstandingBytes = part(o.MaxOutstandingBytes, i, o.Streams)
		// The service then answers pings, see pulse, and expects them.
		request.ProtocolVersion = 1
		streams[i] = &stream{reader: r, first: request}
	}
	return streams
}

// part returns the i-th of n parts of a total; together they are the total.
func part(total int64, i, n int) int64 {
	share, rest := total/int64(n), total%int64(n)
	if int64(i) < rest {
		share++
	}
	return share
}

// receive keeps the stream open and accepts what it brings. pullLocked starts it; it
// ends with ctx, or after an error that no retry mends, which fails the next
// bundle.
func (s *stream) receive(ctx context.Context) {
	r := s.reader
	fresh := gax.Backoff{Initial: reopenMin, Max: reopenMax, Multiplier: 2}
	backoff := fresh
	var since time.Time // when the failures began that nothing has interrupted
	for ctx.Err() == nil {
		opened, least := time.Now(), reopenMin
		brought, err := s.pull(ctx, since.IsZero())
		if ctx.Err() != nil {
			return
		}
		now := time.Now()
		worked := brought || now.Sub(opened) >= steady
		if worked {
			backoff, since = fresh, time.Time{}
		} else if since.IsZero() {
			since = opened
		}
		class := transport.Classify(ctx, err)
		if fatal := r.judge(class, err, worked, now.Sub(since)); fatal != nil {
			r.setFailure(fatal)
			return
		}
		if worked {
			r.counts.StreamsReopened.Add(1)
			slog.Debug("source: stream ended and is opened again", "subscription", r.subscription, "status", transport.Describe(err))
		} else {
			r.streamFails(s, err, now.Sub(since))
		}
		if class == transport.Missing {
			least = missingPause
		}
		if gax.Sleep(ctx, max(backoff.Pause(), least-now.Sub(opened))) != nil {
			return
		}
	}
}

// judge returns the error that fails the next bundle, nil where opening the stream
// again may mend what has ended it. worked is of this opening, and lasting says for
// how long the stream has not worked.
func (r *reader) judge(class transport.Class, err error, worked bool, lasting time.Duration) error {
	switch {
	case class == transport.Retryable || class == transport.Ended:
		return nil
	case class == transport.Missing && (worked || r.knownFor() >= missingGrace):
		// The service knew it, so it is no newcomer that not every server has heard
		// of. If it was created again meanwhile, that is another one: what was held
		// can never be acknowledged, and what was published in between is nowhere.
		return errDeleted(r.subscription, err)
	case class == transport.Missing && lasting < missingGrace:
		return nil
	case class != transport.Missing && worked:
		return nil // If it was meant, the next opening is refused.
	}
	r.counts.Errors.Add(status.Code(err))
	return callError("pull from", r.subscription, err)
}
