package source

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// A modelService is Pub/Sub as a reader may find it: what it promises and no
// more. A message waits, is out at a client under a lease that lapses in virtual
// time, or is settled.
type modelService struct {
	conduct modelConduct
	// acked hears of each acknowledgement that counts, under mu.
	acked func(*modelMessage)

	mu       sync.Mutex // guards all below
	messages []*modelMessage
	keys     map[string][]*modelMessage // in the order of publishing
	byAckID  map[string]*modelMessage   // of every delivery there was
	streams  map[*modelStream]bool
	changed  chan struct{} // closed when something has
	oldAcks  int           // with ack ids that were no longer the newest
	faults   map[modelCall]modelFault
}

// A modelConduct is what the service is free to do.
type modelConduct struct {
	// Ordered keeps the order of each key. A message that comes back brings all
	// later ones of its key with it, acknowledged ones too where Resends is set.
	Ordered, Resends bool
	// OldAcks says whether an acknowledgement with an ack id that is not the newest
	// counts: never, always, or every other time.
	OldAcks int
	// Response is how many messages come in one response at most.
	Response int
	// Backwards delivers the newest messages first, where no key says otherwise.
	Backwards bool
	// Late has another response under way when a client hangs up, and Deaf does
	// not end the stream then.
	Late, Deaf bool
}

type modelMessage struct {
	n         int
	id, key   string
	publish   time.Time
	ackID     string // of the newest delivery
	delivered int    // deliveries
	came      time.Time
	state     modelState
	deadline  time.Time    // while it is out
	at        *modelStream // where it is out
}

func (m *modelMessage) String() string { return m.id }

type modelState int

const (
	waiting modelState = iota
	out
	settled
)

// A modelCall is a kind of call that the service may refuse.
type modelCall int

const (
	callAck modelCall = iota
	callExtend
	callReturn
	callOpen
	modelCalls
)

// A modelFault is what becomes of calls of a kind until a time.
type modelFault struct {
	until time.Time
	how   modelFailure
}

type modelFailure int

const (
	refuse modelFailure = iota // nothing happens, and Unavailable is the answer
	lose                       // it happens, and Unavailable is the answer
	slow                       // it takes longer than an attempt may
	forbid                     // PermissionDenied
	tarry                      // it takes two seconds
	modelFailures
)

func newModelService(c modelConduct) *modelService {
	return &modelService{
		conduct: c, keys: make(map[string][]*modelMessage), byAckID: make(map[string]*modelMessage),
		streams: make(map[*modelStream]bool), changed: make(chan struct{}), faults: make(map[modelCall]modelFault),
	}
}

// publish adds a message of a key, "" for none, that was published a while ago.
func (s *modelService) publish(key string, age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishLocked(key, age)
}

// publishIntoTheVoid adds a message that is sent on every stream and that nobody gets:
// their connections die with it on its way.
func (s *modelService) publishIntoTheVoid(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishLocked(key, 0)
	for stream := range s.streams {
		s.nextLocked(stream)
		stream.broken = true
	}
}

func (s *modelService) publishLocked(key string, age time.Duration) {
	n := len(s.messages)
	m := &modelMessage{n: n, id: fmt.Sprint("m", n), key: key, publish: time.Now().Add(-age)}
	s.messages = append(s.messages, m)
	if key != "" {
		s.keys[key] = append(s.keys[key], m)
	}
	s.changedLocked()
}

func (s *modelService) changedLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// unsettled returns the messages that were not acknowledged so far.
func (s *modelService) unsettled() []*modelMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.messages), func(m *modelMessage) bool { return m.state == settled })
}

// find returns the message with that id.
func (s *modelService) find(id string) *modelMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.id == id {
			return m
		}
	}
	return nil
}

// lapse ends the lease of the n-th of the messages that are out, as the service may
// at any time.
func (s *modelService) lapse(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	var all []*modelMessage
	for _, m := range s.messages {
		if m.state == out {
			all = append(all, m)
		}
	}
	if len(all) > 0 {
		s.takeBackLocked(all[n%len(all)])
		s.changedLocked()
	}
}

// breakStreams ends every stream that is open.
func (s *modelService) breakStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.streams {
		stream.broken = true
	}
	s.changedLocked()
}

// fault has calls of a kind go wrong for a while.
func (s *modelService) fault(c modelCall, how modelFailure, during time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[c] = modelFault{time.Now().Add(during), how}
}

// mend ends all faults.
func (s *modelService) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
	s.changedLocked()
}

// expireLocked takes back what is out beyond its lease.
func (s *modelService) expireLocked() {
	now := time.Now()
	for _, m := range s.messages {
		if m.state == out && !now.Before(m.deadline) {
			s.takeBackLocked(m)
		}
	}
}

// takeBackLocked has a message that was returned, or that lapsed, wait again.
func (s *modelService) takeBackLocked(m *modelMessage) {
	again := []*modelMessage{m}
	if s.conduct.Ordered && m.key != "" {
		of := s.keys[m.key]
		again = of[slices.Index(of, m):]
	}
	for _, m := range again {
		if m.state == out || s.conduct.Resends && m.state == settled {
			m.state, m.at = waiting, nil
		}
	}
}

// nextLocked returns what can be sent on a stream now.
func (s *modelService) nextLocked(to *modelStream) []*pubsubpb.ReceivedMessage {
	s.expireLocked()
	room := min(s.conduct.Response, int(to.first.GetMaxOutstandingMessages()))
	for _, m := range s.messages {
		if m.at == to {
			room--
		}
	}
	order := s.messages
	if s.conduct.Backwards && !s.conduct.Ordered {
		order = slices.Clone(order)
		slices.Reverse(order)
	}
	var send []*pubsubpb.ReceivedMessage
	for _, m := range order {
		if len(send) < room && m.state == waiting && s.mayGoLocked(m, to) {
			send = append(send, s.sendLocked(m, to))
		}
	}
	return send
}

// mayGoLocked reports whether the order of its key lets m go to that stream: after all
// earlier ones, and to the client that holds them.
func (s *modelService) mayGoLocked(m *modelMessage, to *modelStream) bool {
	if !s.conduct.Ordered || m.key == "" {
		return true
	}
	for _, before := range s.keys[m.key] {
		if before == m {
			break
		}
		if before.state == waiting || before.state == out && before.at.first.GetClientId() != to.first.GetClientId() {
			return false
		}
	}
	return true
}

func (s *modelService) sendLocked(m *modelMessage, to *modelStream) *pubsubpb.ReceivedMessage {
	m.delivered++
	m.ackID = fmt.Sprint(m.id, "#", m.delivered)
	m.state, m.at = out, to
	m.deadline = time.Now().Add(time.Duration(to.first.GetStreamAckDeadlineSeconds()) * time.Second)
	if m.came.IsZero() {
		m.came = time.Now()
	}
	s.byAckID[m.ackID] = m
	return &pubsubpb.ReceivedMessage{AckId: m.ackID, DeliveryAttempt: int32(m.delivered), Message: &pubsubpb.PubsubMessage{
		MessageId: m.id, Data: []byte("data of " + m.id), OrderingKey: m.key, PublishTime: timestamppb.New(m.publish),
	}}
}

// ackLocked takes in an acknowledgement. With an old ack id it may count, or not.
func (s *modelService) ackLocked(ackID string) {
	m := s.byAckID[ackID]
	if m == nil || m.state == settled {
		return
	}
	if m.state != out || m.ackID != ackID {
		s.oldAcks++
		if s.conduct.OldAcks == 0 || s.conduct.OldAcks == 2 && s.oldAcks%2 == 0 {
			return
		}
	}
	m.state, m.at = settled, nil
	s.acked(m)
}

// modifyLocked takes in an extension, or a return where the deadline is zero.
func (s *modelService) modifyLocked(ackID string, deadline time.Duration) {
	m := s.byAckID[ackID]
	if m == nil || m.state != out || m.ackID != ackID {
		return
	}
	if deadline == 0 {
		s.takeBackLocked(m)
		return
	}
	m.deadline = time.Now().Add(deadline)
}

// call makes a call of a kind that has an effect, or goes wrong.
func (s *modelService) call(ctx context.Context, c modelCall, effect func()) error {
	s.mu.Lock()
	fault, bad := s.faults[c]
	bad = bad && time.Now().Before(fault.until)
	s.mu.Unlock()
	act := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.expireLocked()
		effect()
		s.changedLocked()
	}
	if !bad {
		act()
		return nil
	}
	switch fault.how { //nolint:exhaustive // refuse is the rest
	case lose:
		act()
	case slow, tarry:
		takes := 2 * time.Second
		if fault.how == slow {
			takes = 40 * time.Second
		}
		select {
		case <-time.After(takes):
			act()
			return nil
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	case forbid:
		return status.Error(codes.PermissionDenied, "not now")
	}
	return status.Error(codes.Unavailable, "not now")
}

// A modelClient is the service as one process reaches it.
type modelClient struct {
	pubsubpb.SubscriberClient
	service *modelService
	dead    bool // the process is; guarded by the service's mu
}

func (c *modelClient) kill() {
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	c.dead = true
}

// live returns effect, or what does nothing where the process is dead.
func (c *modelClient) live(effect func()) func() {
	return func() {
		if !c.dead {
			effect()
		}
	}
}

func (c *modelClient) Acknowledge(ctx context.Context, r *pubsubpb.AcknowledgeRequest, _ ...grpc.CallOption) (*emptypb.Empty, error) {
	return new(emptypb.Empty), c.service.call(ctx, callAck, c.live(func() {
		for _, id := range r.GetAckIds() {
			c.service.ackLocked(id)
		}
	}))
}

func (c *modelClient) ModifyAckDeadline(ctx context.Context, r *pubsubpb.ModifyAckDeadlineRequest, _ ...grpc.CallOption) (*emptypb.Empty, error) {
	kind := callExtend
	if r.GetAckDeadlineSeconds() == 0 {
		kind = callReturn
	}
	return new(emptypb.Empty), c.service.call(ctx, kind, c.live(func() {
		for _, id := range r.GetAckIds() {
			c.service.modifyLocked(id, time.Duration(r.GetAckDeadlineSeconds())*time.Second)
		}
	}))
}

func (c *modelClient) GetSubscription(context.Context, *pubsubpb.GetSubscriptionRequest, ...grpc.CallOption) (*pubsubpb.Subscription, error) {
	return &pubsubpb.Subscription{Name: testSubscription, Topic: "projects/p/topics/t"}, nil
}

func (c *modelClient) StreamingPull(ctx context.Context, _ ...grpc.CallOption) (pubsubpb.Subscriber_StreamingPullClient, error) {
	var stream *modelStream
	err := c.service.call(ctx, callOpen, func() {
		stream = &modelStream{ctx: ctx, client: c}
		c.service.streams[stream] = true
	})
	if err != nil {
		return nil, err
	}
	return stream, nil
}

// A modelStream is one streaming pull.
type modelStream struct {
	grpc.ClientStream
	ctx    context.Context //nolint:containedctx // a stream has that of its call
	client *modelClient

	// Guarded by the service's mu.
	first          *pubsubpb.StreamingPullRequest // nil until the client has asked
	broken, hungUp bool
	last           bool // what was under way at the end has come
}

func (t *modelStream) Send(r *pubsubpb.StreamingPullRequest) error {
	s := t.client.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.first == nil {
		t.first = r
		s.changedLocked()
	}
	return nil
}

func (t *modelStream) CloseSend() error {
	s := t.client.service
	s.mu.Lock()
	defer s.mu.Unlock()
	t.hungUp = true
	s.changedLocked()
	return nil
}

func (t *modelStream) RecvMsg(m any) error {
	sent, err := t.Recv()
	if err != nil {
		return err
	}
	return send(m, sent, nil)
}

func (t *modelStream) Recv() (*pubsubpb.StreamingPullResponse, error) {
	for {
		ms, changed, lapse, err := t.poll()
		switch {
		case err != nil:
			return nil, err
		case len(ms) > 0:
			return &pubsubpb.StreamingPullResponse{ReceivedMessages: ms}, nil
		}
		select {
		case <-changed:
		case <-time.After(lapse):
		case <-t.ctx.Done():
			return nil, status.FromContextError(t.ctx.Err()).Err()
		}
	}
}

// poll returns what comes now, or until when nothing will.
func (t *modelStream) poll() (ms []*pubsubpb.ReceivedMessage, changed chan struct{}, lapse time.Duration, err error) {
	s := t.client.service
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	switch {
	case t.client.dead || t.ctx.Err() != nil || t.broken:
		err = status.Error(codes.Unavailable, "the stream broke")
	case t.first == nil:
	case t.hungUp && s.conduct.Late && !t.last:
		t.last = true
		ms = s.nextLocked(t)
	case t.hungUp && s.conduct.Deaf: // Until it is cut off.
	case t.hungUp:
		err = io.EOF
	default:
		ms = s.nextLocked(t)
	}
	if err != nil {
		delete(s.streams, t)
	}
	lapse = time.Hour
	for _, m := range s.messages {
		if m.state == out {
			lapse = min(lapse, time.Until(m.deadline))
		}
	}
	return ms, s.changed, lapse, err
}
