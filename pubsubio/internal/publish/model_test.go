package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A plannedAdd is one message of the model test, with what becomes of the
// request that has it.
type plannedAdd struct {
	Other  bool          // goes to the other topic
	Pad    int           // bytes
	Wait   time.Duration // before it is added
	Answer time.Duration // that its request takes, at least
	Retry  bool          // its request fails once, with something retryable
	Deny   bool          // its request is refused
}

type plannedBundle struct {
	Adds []plannedAdd
	Drop bool
}

func drawPlan(t *rapid.T) []plannedBundle {
	add := rapid.Custom(func(t *rapid.T) plannedAdd {
		dice := rapid.IntRange(0, 99)
		return plannedAdd{
			Other:  dice.Draw(t, "other") < 30,
			Pad:    rapid.IntRange(0, 60).Draw(t, "pad"),
			Wait:   time.Duration(rapid.IntRange(0, 3).Draw(t, "wait")) * time.Millisecond,
			Answer: time.Duration(rapid.IntRange(0, 9).Draw(t, "answer")) * time.Millisecond,
			Retry:  dice.Draw(t, "retry") < 10,
			Deny:   dice.Draw(t, "deny") < 3,
		}
	})
	bundle := rapid.Custom(func(t *rapid.T) plannedBundle {
		return plannedBundle{
			Adds: rapid.SliceOfN(add, 0, 25).Draw(t, "adds"),
			Drop: rapid.IntRange(0, 3).Draw(t, "drop") == 0,
		}
	})
	return rapid.SliceOfN(bundle, 1, 5).Draw(t, "bundles")
}

// A modelService is the plain map against which the pool is held: which messages
// are published, and which bundles a refusal concerns.
type modelService struct {
	plan []plannedBundle
	pool *pool

	mu        sync.Mutex // guards all below
	retried   map[string]bool
	published map[string]int
	denied    map[int]bool // bundles with a message in a refused request
	faults    []string
}

func (s *modelService) faultf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// send answers a request as the plan of its messages says.
func (s *modelService) send(_ context.Context, p *payload, messages int) error {
	r := new(pubsubpb.PublishRequest)
	if err := proto.Unmarshal(p.buf, r); err != nil || len(r.Messages) != messages {
		s.faultf("request of %d messages, want %d: %v", len(r.Messages), messages, err)
		return nil
	}
	s.checkCaps(r)
	var takes time.Duration
	retry, deny := "", false
	for _, m := range r.Messages {
		add := s.planOf(m)
		takes = max(takes, add.Answer)
		deny = deny || add.Deny
		if id := idOf(m); add.Retry && s.firstTime(id) {
			retry = id
		}
	}
	pass(takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case retry != "":
		return status.Error(codes.Unavailable, "again")
	case deny:
		for _, m := range r.Messages {
			s.denied[bundleOf(m)] = true
		}
		return status.Error(codes.PermissionDenied, "no")
	default:
		for _, m := range r.Messages {
			s.published[idOf(m)]++
		}
		return nil
	}
}

// checkCaps looks at the pool's window while a request is on the wire.
func (s *modelService) checkCaps(r *pubsubpb.PublishRequest) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	w := &s.pool.window
	if w.messages > w.maxMessages || w.bytes > w.maxBytes && w.messages > 1 {
		s.faultf("%d messages, %d bytes in flight", w.messages, w.bytes)
	}
	if n := len(r.Messages); n > s.pool.opts.BatchElementCount || proto.Size(r) > s.pool.opts.BatchBytes && n > 1 {
		s.faultf("request of %d messages, %d bytes", n, proto.Size(r))
	}
}

func (s *modelService) firstTime(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.retried[id]
	s.retried[id] = true
	return first
}

func messageID(bundle, add int) string { return fmt.Sprintf("%d/%d", bundle, add) }

func idOf(m *pubsubpb.PubsubMessage) string {
	id, _, _ := strings.Cut(string(m.Data), " ")
	return id
}

func bundleOf(m *pubsubpb.PubsubMessage) int {
	var bundle, add int
	_, _ = fmt.Sscanf(idOf(m), "%d/%d", &bundle, &add)
	return bundle
}

func (s *modelService) planOf(m *pubsubpb.PubsubMessage) plannedAdd {
	var bundle, add int
	_, _ = fmt.Sscanf(idOf(m), "%d/%d", &bundle, &add)
	return s.plan[bundle].Adds[add]
}

// run plays one bundle and holds its end against the model.
func (s *modelService) run(ctx context.Context, i int) {
	b, _ := s.pool.begin(Handlers{Warn: func(context.Context, string) {}}.withDefaults())
	plan := s.plan[i]
	for j, add := range plan.Adds {
		pass(add.Wait)
		to := topic
		if add.Other {
			to = otherTopic
		}
		m := &message.Message{Data: []byte(messageID(i, j) + strings.Repeat(" ", add.Pad+1))}
		if err := b.Add(ctx, to, m, 0); err != nil {
			s.checkFailure(i, err)
			b.Drop()
			return
		}
	}
	if plan.Drop {
		b.Drop()
		s.checkGone(i)
		return
	}
	if err := b.Finish(ctx); err != nil {
		s.checkFailure(i, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for j := range plan.Adds {
		if n := s.published[messageID(i, j)]; n != 1 {
			s.faults = append(s.faults, fmt.Sprintf("bundle %d finished, message %d was published %d times", i, j, n))
		}
	}
	if got := b.Counts().Published; got != int64(len(plan.Adds)) {
		s.faults = append(s.faults, fmt.Sprintf("bundle %d counts %d published", i, got))
	}
}

// checkFailure accepts the refusal of a request with a message of the bundle.
func (s *modelService) checkFailure(i int, err error) {
	s.mu.Lock()
	denied := s.denied[i]
	s.mu.Unlock()
	if status.Code(err) != codes.PermissionDenied || !denied {
		s.faultf("bundle %d failed: %v, refused: %t", i, err, denied)
	}
}

// checkGone asserts that nothing of a dropped bundle waits to be sent.
func (s *modelService) checkGone(i int) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	for l := s.pool.filling.first; l != nil; l = l.next {
		r := new(pubsubpb.PublishRequest)
		if err := proto.Unmarshal(l.batch.payload.buf, r); err != nil || len(r.Messages) != l.batch.messages() {
			s.faultf("a batch of %d messages holds %d: %v", l.batch.messages(), len(r.Messages), err)
		}
		for _, m := range r.Messages {
			if bundleOf(m) == i {
				s.faultf("bundle %d was dropped and still has %s in a batch", i, idOf(m))
			}
		}
	}
}

// play runs the plan in virtual time and returns what went wrong.
func play(t *testing.T, plan []plannedBundle) (fault error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &modelService{plan: plan, retried: map[string]bool{}, published: map[string]int{}, denied: map[int]bool{}}
		s.pool = newPool(Config{Nonce: t.Name(), Publisher: options.Publisher{
			MaxInFlightMessages: 8, MaxInFlightBytes: 200, BatchElementCount: 4, BatchBytes: 150, BatchDelay: 5 * time.Millisecond,
		}}.withDefaults(), wire{send: s.send, hangUp: func() {}}, func() {})
		var bundles sync.WaitGroup
		for i := range plan {
			bundles.Go(func() { s.run(t.Context(), i) })
		}
		bundles.Wait()
		pass(time.Minute) // requests of dropped bundles end
		synctest.Wait()
		if w := s.pool.window; w.messages != 0 || w.bytes != 0 || len(w.waiting) != 0 || s.pool.filling.first != nil || s.pool.bundles != 0 {
			s.faultf("left in the pool: %+v, %d bundles", w, s.pool.bundles)
		}
		s.pool.shutDown()
		if len(s.faults) > 0 {
			fault = errors.New(strings.Join(s.faults, "\n"))
		}
	})
	return fault
}

// Random bundles over random answers: nothing is lost, nothing passes a cap, and
// each bundle waits for, and fails by, exactly its own messages.
func TestPool_Model(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if err := play(t, drawPlan(rt)); err != nil {
			rt.Fatal(err)
		}
	})
}
