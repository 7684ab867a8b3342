package source

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

const testSubscription = "projects/p/subscriptions/input"

var errDown = status.Error(codes.Unavailable, "down")

// A fakeService is the other side of a reader's calls. It sends what a test
// hands it and records what it is told.
type fakeService struct {
	send chan []*pubsubpb.ReceivedMessage // to the open stream
	end  chan error                       // ends the open stream

	mu       sync.Mutex // guards all below
	opened   []time.Time
	openErr  error  // of an attempt to open a stream
	asked    func() // is called at the first request on a stream
	pinged   int
	acked    []string
	returned []string
	extended map[string]int
	modified map[time.Duration][]string // to a deadline that is neither a return's nor an extension's
	ackErr   error
	extErr   error
	// returnErr answers returns.
	returnErr error
	// onItsWay comes on a stream after its client has hung up; a deaf service
	// does not end the stream then.
	onItsWay []*pubsubpb.ReceivedMessage
	deaf     bool
	onWire   func([]byte) []byte // changes responses; set before they are sent
	// A service that keeps streams alive answers pings.
	keepsAlive bool
	requests   []*pubsubpb.StreamingPullRequest // the first on each stream
	refuse     map[string]error                 // an opening by this client
	is         *pubsubpb.Subscription
	getErr     error
	looked     int // how often it was asked what the subscription is
}

func newFakeService() *fakeService {
	return &fakeService{send: make(chan []*pubsubpb.ReceivedMessage), end: make(chan error), extended: make(map[string]int), modified: make(map[time.Duration][]string)}
}

func (s *fakeService) calls() calls {
	return calls{
		pull: func(ctx context.Context) (pubsubpb.Subscriber_StreamingPullClient, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.opened = append(s.opened, time.Now())
			if s.openErr != nil {
				return nil, s.openErr
			}
			return &fakeStream{
				ctx: ctx, service: s, hungUp: make(chan struct{}),
				mine: make(chan *pubsubpb.StreamingPullResponse, 1), refused: make(chan error, 1),
			}, nil
		},
		first: &pubsubpb.StreamingPullRequest{Subscription: testSubscription},
		ack: func(_ context.Context, ids []string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.ackErr == nil {
				s.acked = append(s.acked, ids...)
			}
			return s.ackErr
		},
		modify: func(_ context.Context, ids []string, deadline time.Duration) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if deadline == 0 {
				if s.returnErr == nil {
					s.returned = append(s.returned, ids...)
				}
				return s.returnErr
			}
			s.modified[deadline] = append(s.modified[deadline], ids...)
			if s.extErr == nil {
				for _, id := range ids {
					s.extended[id]++
				}
			}
			return s.extErr
		},
		get: func(context.Context) (*pubsubpb.Subscription, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.looked++
			return s.is, s.getErr
		},
		close: func() {},
	}
}

// set changes what the service answers.
func (s *fakeService) set(f func(*fakeService)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// want checks what was acknowledged and returned so far, in any order.
func (s *fakeService) want(t *testing.T, acked, returned []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	a, r := slices.Sorted(slices.Values(s.acked)), slices.Sorted(slices.Values(s.returned))
	if !slices.Equal(a, acked) || !slices.Equal(r, returned) {
		t.Errorf("acknowledged %v and returned %v, want %v and %v", a, r, acked, returned)
	}
}

type fakeStream struct {
	grpc.ClientStream
	ctx     context.Context
	service *fakeService
	hungUp  chan struct{}
	mine    chan *pubsubpb.StreamingPullResponse // to this stream alone
	refused chan error
}

func (s *fakeStream) CloseSend() error {
	close(s.hungUp)
	return nil
}

func (s *fakeStream) Send(request *pubsubpb.StreamingPullRequest) error {
	if request.GetSubscription() == "" {
		s.service.set(func(f *fakeService) {
			f.pinged++
			if f.keepsAlive {
				s.mine <- new(pubsubpb.StreamingPullResponse)
			}
		})
		return nil
	}
	var asked func()
	s.service.set(func(f *fakeService) {
		asked = f.asked
		f.requests = append(f.requests, request)
		if err := f.refuse[request.GetClientId()]; err != nil {
			s.refused <- err
		}
	})
	if asked != nil {
		asked()
	}
	return nil
}

func (s *fakeStream) RecvMsg(m any) error {
	sent, err := s.Recv()
	if err != nil {
		return err
	}
	return send(m, sent, s.service.onWire)
}

func (s *fakeStream) Recv() (*pubsubpb.StreamingPullResponse, error) {
	select {
	case err := <-s.refused:
		return nil, err
	case response := <-s.mine:
		return response, nil
	case err := <-s.service.end:
		return nil, err
	case ms := <-s.service.send:
		return &pubsubpb.StreamingPullResponse{ReceivedMessages: ms}, nil
	case <-s.hungUp:
		return s.last()
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// last is what comes after the client has hung up: what is on its way, then the
// end, unless the service is deaf.
func (s *fakeStream) last() (*pubsubpb.StreamingPullResponse, error) {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	switch ms := s.service.onItsWay; {
	case len(ms) > 0:
		s.service.onItsWay = nil
		return &pubsubpb.StreamingPullResponse{ReceivedMessages: ms}, nil
	case s.service.deaf:
		s.service.mu.Unlock()
		defer s.service.mu.Lock()
		select {
		case ms := <-s.service.send:
			return &pubsubpb.StreamingPullResponse{ReceivedMessages: ms}, nil
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		}
	default:
		return nil, io.EOF
	}
}

// received is a delivery with that ack id of the message with that id.
func received(ackID, id string, published time.Time) *pubsubpb.ReceivedMessage {
	return &pubsubpb.ReceivedMessage{AckId: ackID, Message: &pubsubpb.PubsubMessage{
		MessageId: id, Data: []byte("data of " + id), PublishTime: timestamppb.New(published),
	}}
}

// deliver sends messages 1 to n, published now, with ack ids a1 to an.
func (s *fakeService) deliver(n int) {
	var ms []*pubsubpb.ReceivedMessage
	for i := 1; i <= n; i++ {
		ms = append(ms, received(fmt.Sprint("a", i), fmt.Sprint("m", i), time.Now()))
	}
	s.send <- ms
}

// offer reports whether the stream is read, by a message on it.
func (s *fakeService) offer() bool {
	select {
	case s.send <- []*pubsubpb.ReceivedMessage{received("a9", "m9", time.Now())}:
		return true
	default:
		return false
	}
}

// A fixture is a reader over a fake service, in its own group.
type fixture struct {
	t       *testing.T
	service *fakeService
	group   *group
	*reader
	token, parent string
	n             int
}

// newFixture makes a reader for a test under synctest, which must end it.
func newFixture(t *testing.T, rule run.Rule, adjust func(*Config)) *fixture {
	t.Helper()
	var cfg Config
	if adjust != nil {
		adjust(&cfg)
	}
	return fixtureIn(t, newGroup("test", cfg, run.Binding{Rule: rule}, new(stats.Source)), "reader")
}

var nonces atomic.Int64

// nonceOf returns a nonce that nothing in this process has had, also where the test
// runs a second time: what is counted and kept by nonce lasts as long as the process.
func nonceOf(t testing.TB) string {
	t.Helper()
	return fmt.Sprint(t.Name(), "#", nonces.Add(1))
}

// newRunFixture is newFixture for a reader that its run ends.
func newRunFixture(t *testing.T) (*fixture, *run.Run) {
	t.Helper()
	r := run.Start(run.Finalized, true)
	g, err := groupOf(nonceOf(t), Config{}, r.Binding, new(stats.Source))
	if err != nil {
		t.Fatal(err)
	}
	return fixtureIn(t, g, "reader"), r
}

// fixtureIn makes a reader over a service of its own in a group.
func fixtureIn(t *testing.T, g *group, nonce string) *fixture {
	t.Helper()
	s := newFakeService()
	return &fixture{t: t, service: s, group: g, reader: g.openLocked(nonce, testSubscription, s.calls())}
}

// begin begins the next bundle.
func (f *fixture) begin() *attempt {
	f.t.Helper()
	f.n++
	a, err := f.claim(f.token, f.parent, fmt.Sprint("token", f.n), true)
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

// emitting begins a bundle that takes some of the messages delivered to it.
func (f *fixture) emitting(delivered, taken int) *attempt {
	f.t.Helper()
	a := f.begin()
	f.service.deliver(delivered)
	synctest.Wait()
	f.takeIDs(a, taken)
	return a
}

// committing has n messages emitted and committed while acknowledgements are
// answered with err.
func (f *fixture) committing(n int, err error) {
	f.t.Helper()
	a := f.emitting(n, n)
	f.finish(a, n)
	f.service.set(func(s *fakeService) { s.ackErr = err })
	f.signal(a, signalAt(1, 2))
}

// wantReading checks that a bundle has what comes next.
func (f *fixture) wantReading(a *attempt) {
	f.t.Helper()
	f.service.deliver(1)
	synctest.Wait()
	if got := f.takeIDs(a, 1); len(got) != 1 {
		f.t.Error("nothing is received")
	}
}

// finish ends a bundle well and moves on to its residual.
func (f *fixture) finish(a *attempt, emitted int) {
	f.t.Helper()
	if _, err := f.leave(a, emitted); err != nil {
		f.t.Fatal(err)
	}
	f.finished(a)
	f.token, f.parent = a.token, f.token
}

// takeIDs takes up to n messages and returns their ids.
func (f *fixture) takeIDs(a *attempt, n int) []string {
	f.t.Helper()
	ds, err := f.take(a, nil, n, 1<<30)
	if err != nil {
		f.t.Fatal(err)
	}
	ids := make([]string, len(ds))
	for i, d := range ds {
		ids[i] = d.msg.ID
	}
	return ids
}

func (f *fixture) end() { f.close(f.t.Context()) }

func signalAt(finished, arrived uint64) finalize.Signal {
	return finalize.Signal{Finished: finished, Arrived: arrived}
}

// awaitClosed waits until every reader of the group has closed, or the bubble
// fails.
func (f *fixture) awaitClosed() {
	for {
		changed := f.group.changed.changed()
		if f.group.allClosed() {
			return
		}
		<-changed
	}
}
