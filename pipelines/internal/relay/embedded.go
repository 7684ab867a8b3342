package relay

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// What is on the embedded server.
const (
	inputTopic        = "projects/embedded/topics/orders"
	inputSubscription = "projects/embedded/subscriptions/orders"
	outputTopic       = "projects/embedded/topics/relayed"
	checkSubscription = "projects/embedded/subscriptions/check"
)

const (
	// feedAhead is how many messages may wait to be relayed or to be checked
	// before the feed waits: a million would take a gigabyte.
	feedAhead = 20_000
	// feedBatch is how many messages are published at once.
	feedBatch = 1_000
	// idleTimeout ends an embedded relay that makes no progress any more, which
	// has then failed.
	idleTimeout = 10 * time.Second
)

// errAllRelayed ends a relay of which the embedded server has every message
// acknowledged.
var errAllRelayed = errors.New("every message is acknowledged")

// runEmbedded relays messages of its own through a server of its own, and asks
// that what became of each.
func runEmbedded(ctx context.Context, s settings, stdout io.Writer, screen *program.Console) int {
	srv, err := startServer()
	if err != nil {
		return program.Failed(screen, "relay", err)
	}
	defer srv.Close()
	check, err := startVerifier(ctx, srv, s.embeddedMessages)
	if err != nil {
		return program.Failed(screen, "relay", err)
	}
	r, err := relayEmbedded(ctx, s, srv, screen)
	outcome := check.finish(ctx)
	return conclude(ctx, s, r, outcome, err, stdout, screen)
}

func startServer() (*pubsubtest.Server, error) {
	srv, err := pubsubtest.Start(pubsubtest.Config{})
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		srv.CreateTopic(inputTopic),
		srv.CreateTopic(outputTopic),
		srv.CreateSubscription(inputSubscription, inputTopic),
		srv.CreateSubscription(checkSubscription, outputTopic),
	)
	if err != nil {
		srv.Close()
		return nil, err
	}
	return srv, nil
}

// relayEmbedded feeds srv and relays what it is fed, to its end. It ends when the
// server has everything acknowledged, which no count of our own could tell: a
// message that came twice would stand in for one that is still to come.
func relayEmbedded(ctx context.Context, s settings, srv *pubsubtest.Server, screen *program.Console) (report, error) {
	s.subscriptions = []string{inputSubscription}
	s.topic = outputTopic
	s.Connection = options.Connection{EmulatorEndpoint: srv.Endpoint()}
	s.limit = options.Limit{StopWhenIdle: idleTimeout}
	s.total = int64(s.embeddedMessages)
	if program.OnDirect() {
		s.limit.MaxMessages = s.total // Nothing is acknowledged before the end there.
	}
	run, end := context.WithCancelCause(ctx)
	f := feed{srv: srv, total: s.embeddedMessages}
	if err := f.publish(run, min(f.total, feedAhead)); err != nil {
		end(nil)
		return report{}, err
	}
	var beside sync.WaitGroup
	beside.Go(func() { // Ends with run.
		if err := f.publish(run, f.total); err != nil {
			end(err)
		}
	})
	beside.Go(func() { // Ends with run.
		err := srv.Await(run, inputSubscription, func(st pubsubtest.Stats) bool { return st.Acknowledged >= s.total })
		if err == nil && !program.OnDirect() {
			end(errAllRelayed)
		}
	})
	r, err := relay(run, s, screen)
	end(nil)
	beside.Wait()
	if context.Cause(run) == errAllRelayed && errors.Is(err, pubsubio.ErrStopped) { //nolint:errorlint // end was given it as it is
		err = nil
	}
	return r, err
}

// A feed publishes the embedded server's messages.
type feed struct {
	srv   *pubsubtest.Server
	total int
	book  orderBook
	next  int
}

// publish goes on until upTo messages are published, or returns why not. It
// keeps no further ahead of the relay, and of the checking, than feedAhead.
func (f *feed) publish(ctx context.Context, upTo int) error {
	for f.next < upTo {
		room := func(st pubsubtest.Stats) bool {
			return st.Backlog < feedAhead && f.srv.Stats(checkSubscription).Backlog < feedAhead
		}
		if err := f.srv.Await(ctx, inputSubscription, room); err != nil {
			return err
		}
		batch := make([]*pubsubio.Message, 0, feedBatch)
		for ; f.next < upTo && len(batch) < feedBatch; f.next++ {
			m, err := f.book.message(f.next)
			if err != nil {
				return err
			}
			batch = append(batch, m)
		}
		if _, err := f.srv.Publish(inputTopic, batch...); err != nil {
			return err
		}
	}
	return nil
}
