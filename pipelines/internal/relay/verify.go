package relay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// checkTimeout bounds how long what has arrived may take to be looked at once
// the relay has ended.
const checkTimeout = 30 * time.Second

// A verdict is what the embedded server says of a relay, asked after its end.
type verdict struct {
	sent    int64 // to be published to the input topic
	arrived int64 // distinct messages that came out, undamaged
	again   int64 // arrivals of a message that had arrived already
	foreign int64 // arrivals that are no message that was sent, or a damaged one
	missing []int // the first few that did not arrive

	acknowledged int64 // on the input subscription
	lost         int64 // of these, the ones that did not arrive
	firstLost    []int // the first few of them
	outstanding  int64 // there, held by somebody who has ended; lost is then unknown
	failure      error // why the checking itself went wrong
}

// err says what is wrong; nil where everything is as it must be. An interrupted
// relay has left messages where they were: then it is enough that everything that
// was acknowledged has arrived. What arrived and was not acknowledged would arrive
// once more, as a copy, which is no fault.
func (v *verdict) err(interrupted bool) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if v.failure != nil {
		fault("checking what arrived: %w", v.failure)
	}
	if v.foreign > 0 {
		fault("%s messages arrived damaged, or were never sent", program.Grouped(v.foreign))
	}
	if v.outstanding > 0 {
		fault("%s messages were neither acknowledged nor returned", program.Grouped(v.outstanding))
	}
	switch missing := v.sent - v.arrived; {
	case interrupted && v.lost > 0:
		fault("%s messages were acknowledged and did not arrive, the first of them numbers %v", program.Grouped(v.lost), v.firstLost)
	case interrupted:
	case missing > 0:
		fault("%s of %s messages did not arrive, the first of them numbers %v", program.Grouped(missing), program.Grouped(v.sent), v.missing)
	case v.acknowledged != v.sent:
		fault("%s of %s messages were not acknowledged", program.Grouped(v.sent-v.acknowledged), program.Grouped(v.sent))
	}
	return errors.Join(faults...)
}

// A numberSet is a set of message numbers, a bit each; nil is an empty one.
type numberSet []uint64

func newNumberSet(n int) numberSet { return make(numberSet, (n+63)/64) }

func (s numberSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s numberSet) has(i int) bool { return i/64 < len(s) && s[i/64]&(1<<(i%64)) != 0 }

// A verifier reads a subscription of the output topic and ticks off what comes.
// It keeps a bit for each message, so that a copy never stands in for a message
// that is lost, whatever the counts say.
type verifier struct {
	server *pubsubtest.Server
	n      int // messages that are sent
	conn   *grpc.ClientConn
	client pubsubpb.SubscriberClient
	cancel context.CancelFunc
	ended  chan struct{}

	// Written by read alone, and read once ended is closed.
	seen                    numberSet
	arrived, again, foreign int64
	failure                 error
}

// startVerifier starts to read; finish ends it, not ctx: what an interrupted
// relay has done is checked too.
func startVerifier(ctx context.Context, server *pubsubtest.Server, n int) (*verifier, error) {
	conn, err := grpc.NewClient(server.Endpoint(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	v := &verifier{
		server: server,
		n:      n,
		conn:   conn,
		client: pubsubpb.NewSubscriberClient(conn),
		cancel: cancel,
		ended:  make(chan struct{}),
		seen:   newNumberSet(n),
	}
	go v.read(ctx)
	return v, nil
}

// read runs until finish cancels ctx, and waits for it.
func (v *verifier) read(ctx context.Context) {
	defer close(v.ended)
	for ctx.Err() == nil {
		got, err := v.client.Pull(ctx, &pubsubpb.PullRequest{Subscription: checkSubscription, MaxMessages: 1000})
		if err == nil && len(got.GetReceivedMessages()) > 0 {
			ack := &pubsubpb.AcknowledgeRequest{Subscription: checkSubscription}
			for _, m := range got.GetReceivedMessages() {
				v.tick(m.GetMessage())
				ack.AckIds = append(ack.AckIds, m.GetAckId())
			}
			_, err = v.client.Acknowledge(ctx, ack)
		}
		if err != nil && ctx.Err() == nil {
			v.failure = err
			return
		}
	}
}

func (v *verifier) tick(m *pubsubpb.PubsubMessage) {
	number, ok := v.number(m)
	switch {
	case !ok:
		v.foreign++
	case v.seen.has(number):
		v.again++
	default:
		v.seen.add(number)
		v.arrived++
	}
}

// number is which of the messages m is, if it is one of them and undamaged.
func (v *verifier) number(m *pubsubpb.PubsubMessage) (n int, ok bool) {
	n, err := strconv.Atoi(m.GetAttributes()[sequenceAttribute])
	ok = err == nil && n >= 0 && n < v.n && m.GetAttributes()[checksumAttribute] == checksum(m.GetData(), m.GetAttributes())
	return n, ok
}

// finish waits until everything that was published to the output topic was
// looked at, ends the reading, and looks at what the relay has left.
func (v *verifier) finish(ctx context.Context) *verdict {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	err := v.awaitAll(ctx)
	v.cancel()
	<-v.ended
	in := v.server.Stats(inputSubscription)
	out := &verdict{
		sent:         int64(v.n),
		arrived:      v.arrived,
		again:        v.again,
		foreign:      v.foreign,
		acknowledged: in.Acknowledged,
		outstanding:  in.Outstanding,
	}
	_, out.missing = v.absent(v.n, nil)
	if in.Outstanding == 0 {
		left, leftErr := v.left(ctx, in.Backlog)
		err = errors.Join(err, leftErr)
		if leftErr == nil {
			out.lost, out.firstLost = v.absent(int(v.server.Published(inputTopic)), left)
		}
	}
	out.failure = errors.Join(v.failure, err, v.conn.Close())
	return out
}

// awaitAll waits until read has looked at everything. A read that has failed looks
// at nothing any more.
func (v *verifier) awaitAll(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // Ends with ctx.
		select {
		case <-v.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return v.server.Await(ctx, checkSubscription, func(s pubsubtest.Stats) bool { return s.Acknowledged == s.Published })
}

// left returns which messages wait on the input subscription, which are n. The
// rest of what was published is acknowledged: the server counts that and does not
// say which.
func (v *verifier) left(ctx context.Context, n int64) (numberSet, error) {
	left := newNumberSet(v.n)
	for n > 0 {
		got, err := v.client.Pull(ctx, &pubsubpb.PullRequest{Subscription: inputSubscription, MaxMessages: 1000})
		if err != nil {
			return nil, err
		}
		for _, m := range got.GetReceivedMessages() {
			if number, ok := v.number(m.GetMessage()); ok {
				left.add(number)
			}
		}
		n -= int64(len(got.GetReceivedMessages()))
	}
	return left, nil
}

// absent returns how many of the first n messages did not arrive and are not in
// except, and the first few of them.
func (v *verifier) absent(n int, except numberSet) (count int64, first []int) {
	for i := range min(n, v.n) {
		if v.seen.has(i) || except.has(i) {
			continue
		}
		count++
		if len(first) < 5 {
			first = append(first, i)
		}
	}
	return count, first
}
