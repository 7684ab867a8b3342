package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

func keyed(key, data string) *message.Message {
	return &message.Message{Data: []byte(data), OrderingKey: key}
}

// A key stayed paused after a failure, until somebody resumed it (C31).
func TestOrder_AKeyInTroubleHoldsUpNoOther_C31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &fakeService{answer: func(_ context.Context, r *pubsubpb.PublishRequest) error {
			for _, m := range r.Messages {
				if string(m.Data) == "k5" && time.Since(began) < 90*time.Second {
					return status.Error(codes.DeadlineExceeded, "late")
				}
			}
			return nil
		}}
		p := newTestPool(t, f, options.Publisher{EnableMessageOrdering: true, BatchElementCount: 1, RetryMaxDelay: 5 * time.Second})
		var warnings []string
		stuck := openWith(t, p, Handlers{Warn: func(_ context.Context, text string) { warnings = append(warnings, text) }})
		other := open(t, p)
		for i := range 10 {
			if err := stuck.Add(t.Context(), topic, keyed("k", fmt.Sprint("k", i)), 0); err != nil {
				t.Fatal(err)
			}
			if err := other.Add(t.Context(), topic, keyed("o", fmt.Sprint("o", i)), 0); err != nil {
				t.Fatal(err)
			}
		}
		mustFinish(t, other)
		if took := time.Since(began); took > time.Second {
			t.Errorf("another key waited %v", took)
		}
		// Others succeed all the time: no stall, and yet somebody must hear of it.
		busy := make(chan struct{})
		var others sync.WaitGroup
		others.Go(func() {
			for {
				select {
				case <-busy:
					return
				case <-time.After(time.Second):
				}
				b := open(t, p)
				mustAddTo(t, b, otherTopic, "x")
				mustFinish(t, b)
			}
		})
		mustFinish(t, stuck)
		close(busy)
		others.Wait()
		if len(warnings) != 1 || !strings.Contains(warnings[0], "publish to "+topic+" goes on failing: DeadlineExceeded: late (") {
			t.Errorf("warnings: %q", warnings)
		}
		var k []string
		for _, s := range f.inOrder() {
			if s[0] == 'k' {
				k = append(k, s)
			}
		}
		if want := []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9"}; !slices.Equal(k, want) {
			t.Errorf("stored %v", k)
		}
	})
}

// What waits behind a request of its key goes in as few requests as it fits in.
func TestOrder_BatchesBehindTheRequestOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{EnableMessageOrdering: true, BatchElementCount: 10})
		b := open(t, p)
		for i := range 26 {
			if i == 1 {
				pass(20 * time.Millisecond) // BatchDelay sends the first alone
			}
			if err := b.Add(t.Context(), topic, keyed("k", fmt.Sprint(i)), 0); err != nil {
				t.Fatal(err)
			}
		}
		go func() {
			for range 4 {
				synctest.Wait()
				release(nil)
			}
		}()
		mustFinish(t, b)
		if got := f.sizes(); !slices.Equal(got, []int{1, 10, 10, 5}) {
			t.Errorf("requests of %v messages", got)
		}
	})
}

// Messages without a key have no order, in this mode either.
func TestOrder_MessagesWithoutAKeyPublishFreely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{EnableMessageOrdering: true, BatchElementCount: 1})
		b := open(t, p)
		mustAdd(t, b, "a", "b", "c")
		synctest.Wait()
		if f.inFlight != 3 {
			t.Errorf("%d requests at once, want 3", f.inFlight)
		}
		for range 3 {
			release(nil)
		}
		mustFinish(t, b)
		if len(p.topics.byTopic[topic].keyed) != 0 {
			t.Error("a lane for no key")
		}
	})
}

// Ten thousand keys come and go; what they had is given back.
func TestOrder_KeysLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, &fakeService{}, options.Publisher{EnableMessageOrdering: true})
		b := open(t, p)
		for i := range 10_000 {
			if err := b.Add(t.Context(), topic, keyed(fmt.Sprint(i), "x"), 0); err != nil {
				t.Fatal(err)
			}
		}
		mustFinish(t, b)
		synctest.Wait()
		if n := len(p.topics.byTopic[topic].keyed); n != 0 {
			t.Errorf("%d lanes left", n)
		}
	})
}

// A bundle failed while the request of a key was on the wire: its retry must wait
// for that one's answer, or the older copy may come last.
func TestOrder_AKeyStaysBusyForADroppedBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{EnableMessageOrdering: true, BatchElementCount: 1})
		a := open(t, p)
		for _, s := range []string{"1", "2"} {
			if err := a.Add(t.Context(), topic, keyed("k", s), 0); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		a.Drop()
		retry := open(t, p)
		for _, s := range []string{"1", "2"} {
			if err := retry.Add(t.Context(), topic, keyed("k", s), 0); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Minute / 2)
		synctest.Wait()
		if f.inFlight != 1 {
			t.Errorf("%d requests of one key at once", f.inFlight)
		}
		go func() {
			for range 3 {
				release(nil)
			}
		}()
		mustFinish(t, retry)
		if got := f.sizes(); len(got) != 3 {
			t.Errorf("%d requests, want 3: the dropped bundle's second message is of no more use", len(got))
		}
	})
}

// A scheduled answer is what becomes of one request.
type scheduledAnswer int

const (
	answerOK scheduledAnswer = iota
	answerUnavailable
	answerStoredThenLate
	answerQuota
	answerDenied
	answerMissing
	answers
)

// An orderService stores in order, refuses poison, and fails by schedule.
type orderService struct {
	schedule []scheduledAnswer

	mu     sync.Mutex // guards all below
	calls  int
	busy   map[string]int
	stored map[string][]string // first copies by key
	seen   map[string]bool
	faults []string
}

func (s *orderService) send(ctx context.Context, p *payload, _ int) error {
	r := new(pubsubpb.PublishRequest)
	if err := proto.Unmarshal(p.buf, r); err != nil {
		return err
	}
	key := r.Messages[0].OrderingKey
	s.mu.Lock()
	answer := answerOK
	if s.calls < len(s.schedule) {
		answer = s.schedule[s.calls]
	}
	s.calls++
	if s.busy[key]++; key != "" && s.busy[key] > 1 {
		s.faults = append(s.faults, "two requests of key "+key)
	}
	s.mu.Unlock()
	pass(3 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[key]--
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch answer {
	case answerUnavailable:
		return status.Error(codes.Unavailable, "away")
	case answerQuota:
		return status.Error(codes.ResourceExhausted, "quota")
	case answerDenied:
		return status.Error(codes.PermissionDenied, "no")
	case answerMissing:
		return status.Error(codes.NotFound, "no topic")
	case answerOK, answerStoredThenLate, answers:
	}
	if err := poisoned(ctx, r); err != nil {
		return err
	}
	for _, m := range r.Messages {
		if m.OrderingKey != key {
			s.faults = append(s.faults, "two keys in a request")
		}
		if d := string(m.Data); !s.seen[d] {
			s.seen[d] = true
			s.stored[key] = append(s.stored[key], d)
		}
	}
	if answer == answerStoredThenLate {
		return status.Error(codes.DeadlineExceeded, "late")
	}
	return nil
}

type orderPlan struct {
	Bundles  [][]orderAdd
	Schedule []scheduledAnswer
	Batch    int
	Window   int
}

type orderAdd struct {
	Key    int // 0 is none
	Poison bool
	Wait   time.Duration
}

func drawOrderPlan(t *rapid.T) orderPlan {
	add := rapid.Custom(func(t *rapid.T) orderAdd {
		return orderAdd{
			Key:    rapid.IntRange(0, 3).Draw(t, "key"),
			Poison: rapid.IntRange(0, 9).Draw(t, "poison") == 0,
			Wait:   time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 12}).Draw(t, "wait")) * time.Millisecond,
		}
	})
	return orderPlan{
		Bundles:  rapid.SliceOfN(rapid.SliceOfN(add, 1, 30), 1, 4).Draw(t, "bundles"),
		Schedule: rapid.SliceOfN(rapid.Map(rapid.IntRange(0, int(answers)-1), func(i int) scheduledAnswer { return scheduledAnswer(i) }), 0, 40).Draw(t, "answers"),
		Batch:    rapid.IntRange(1, 8).Draw(t, "batch"),
		Window:   rapid.IntRange(1, 20).Draw(t, "window"),
	}
}

// playOrder publishes the bundles one after another, each again until it succeeds,
// as a runner does, and returns what went wrong.
func playOrder(t *testing.T, plan orderPlan) (fault error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &orderService{schedule: plan.Schedule, busy: map[string]int{}, stored: map[string][]string{}, seen: map[string]bool{}}
		w := wire{send: s.send, create: func(context.Context, string) error { return nil }, hangUp: func() {}}
		p := newPool(Config{Nonce: t.Name(), Publisher: options.Publisher{
			EnableMessageOrdering: true, BatchElementCount: plan.Batch, MaxInFlightMessages: plan.Window, MaxConsecutiveRejections: options.Unbounded,
		}}.withDefaults(), w, func() {})
		want, routed := map[string][]string{}, map[string]bool{}
		var poison []string
		for i, adds := range plan.Bundles {
			for j, add := range adds {
				id := fmt.Sprintf("%d/%d", i, j)
				if add.Poison {
					poison = append(poison, "bad"+id)
				} else {
					key := keyOf(add)
					want[key] = append(want[key], id)
				}
			}
			for try := 0; runOrdered(t, p, i, adds, routed) != nil; try++ {
				if try > len(plan.Schedule) {
					s.faults = append(s.faults, "a bundle does not succeed")
					break
				}
			}
		}
		pass(10 * time.Minute)
		synctest.Wait()
		if got := p.window; got.messages != 0 || p.filling.first != nil || p.bundles != 0 || p.parked != 0 {
			s.faults = append(s.faults, fmt.Sprintf("left in the pool: %+v", got))
		}
		p.shutDown()
		for key := range want {
			got := s.stored[key]
			if key == "" {
				slices.Sort(got)
				slices.Sort(want[key])
			}
			if !slices.Equal(got, want[key]) {
				s.faults = append(s.faults, fmt.Sprintf("key %q:\n got %v\nwant %v", key, got, want[key]))
			}
		}
		for _, id := range poison {
			if !routed[id] {
				s.faults = append(s.faults, id+" was not routed")
			}
		}
		if len(s.faults) > 0 {
			fault = errors.New(strings.Join(s.faults, "\n"))
		}
	})
	return fault
}

func keyOf(a orderAdd) string {
	if a.Key == 0 {
		return ""
	}
	return fmt.Sprint("k", a.Key)
}

func runOrdered(t *testing.T, p *pool, i int, adds []orderAdd, routed map[string]bool) error {
	t.Helper()
	b := openWith(t, p, Handlers{Warn: func(context.Context, string) {}, Reject: func(_ context.Context, r Rejection) error {
		routed[string(r.Message.Data)] = true
		return nil
	}})
	defer b.Drop()
	for j, add := range adds {
		pass(add.Wait)
		id := fmt.Sprintf("%d/%d", i, j)
		if add.Poison {
			id = "bad" + id
		}
		if err := b.Add(t.Context(), topic, keyed(keyOf(add), id), 0); err != nil {
			return err
		}
	}
	return b.Finish(t.Context())
}

// Whatever fails, and however often a bundle is run again, the first copies of a
// key come in order, the survivors of a rejection keep theirs, and nothing is lost.
func TestOrder_Property(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if err := playOrder(t, drawOrderPlan(rt)); err != nil {
			rt.Fatal(err)
		}
	})
}

// The first half of a refused request failed for good, and the second went on: it
// came before the first, which was published again with the bundle.
func TestOrder_NothingFollowsAFailureOfItsBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		denied := status.Error(codes.PermissionDenied, "no")
		f := &fakeService{}
		f.answer = func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			if len(r.Messages) == 2 && string(r.Messages[0].Data) == "1" {
				return denied
			}
			return poisoned(ctx, r)
		}
		p := newTestPool(t, f, options.Publisher{EnableMessageOrdering: true, BatchElementCount: 4})
		b := open(t, p)
		for _, s := range []string{"1", "2", "3", "bad", "5"} {
			if err := b.Add(t.Context(), topic, keyed("k", s), 0); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if err := b.Finish(t.Context()); !errors.Is(err, denied) {
			t.Errorf("Finish: %v", err)
		}
		synctest.Wait()
		if got := f.inOrder(); len(got) != 0 {
			t.Errorf("stored %v", got)
		}
	})
}
