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

// A chaosPlan is a worker of several producers, each of which has ordering keys of
// its own and publishes its bundles one after another, each again until it succeeds.
// Their topics, requests, publishers and caps are shared.
type chaosPlan struct {
	Producers [][]chaosBundle
	Schedule  []scheduledAnswer // of publish calls
	Creations []codes.Code      // of creation calls
	Missing   []bool            // topics that do not exist at first
	Takes     []int             // milliseconds that calls take, in turn
	Options   options.Publisher
}

type chaosBundle struct {
	Adds []chaosAdd
	// Drops are after how many milliseconds the first attempts are dropped, wherever
	// they are then.
	Drops []int
}

type chaosAdd struct {
	Topic  int
	Key    int // 0 is none
	Poison bool
	Wait   int // milliseconds
}

func drawChaos(t *rapid.T) chaosPlan {
	topics := rapid.IntRange(1, 5).Draw(t, "topics")
	add := rapid.Custom(func(t *rapid.T) chaosAdd {
		return chaosAdd{
			Topic:  rapid.IntRange(0, topics-1).Draw(t, "topic"),
			Key:    rapid.IntRange(0, 2).Draw(t, "key"),
			Poison: rapid.IntRange(0, 9).Draw(t, "poison") == 0,
			Wait:   rapid.SampledFrom([]int{0, 0, 0, 0, 1, 8}).Draw(t, "wait"),
		}
	})
	bundle := rapid.Custom(func(t *rapid.T) chaosBundle {
		return chaosBundle{
			Adds:  rapid.SliceOfN(add, 1, 20).Draw(t, "adds"),
			Drops: rapid.SliceOfN(rapid.IntRange(0, 60), 0, 2).Draw(t, "drops"),
		}
	})
	answer := rapid.Map(rapid.IntRange(0, int(answers)-1), func(i int) scheduledAnswer { return scheduledAnswer(i) })
	return chaosPlan{
		Producers: rapid.SliceOfN(rapid.SliceOfN(bundle, 1, 3), 1, 4).Draw(t, "producers"),
		Schedule:  rapid.SliceOfN(answer, 0, 40).Draw(t, "answers"),
		Creations: rapid.SliceOfN(rapid.SampledFrom([]codes.Code{codes.OK, codes.Unavailable, codes.PermissionDenied, codes.AlreadyExists}), 0, 6).Draw(t, "creations"),
		Missing:   rapid.SliceOfN(rapid.Bool(), topics, topics).Draw(t, "missing"),
		Takes:     rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 3, 20}), 1, 8).Draw(t, "takes"),
		Options: options.Publisher{
			EnableMessageOrdering:    true,
			MaxConsecutiveRejections: options.Unbounded,
			BatchDelay:               5 * time.Millisecond,
			BatchElementCount:        rapid.IntRange(1, 6).Draw(t, "batch"),
			MaxInFlightMessages:      rapid.IntRange(1, 12).Draw(t, "messages"),
			MaxInFlightBytes:         int64(rapid.SampledFrom([]int{40, 150, 1000}).Draw(t, "bytes")),
			MaxActivePublishers:      rapid.IntRange(1, 3).Draw(t, "publishers"),
		},
	}
}

// A chaosService is the service, and the plain model that the pool is held against.
type chaosService struct {
	plan chaosPlan
	pool *pool

	mu       sync.Mutex // guards all below
	calls    int
	asked    int             // for creations
	missing  map[string]bool // topics
	busy     map[string]int  // requests of a lane
	onTopic  map[string]int  // requests of a topic
	stored   map[string][]string
	seen     map[string]bool
	denied   map[string]bool // attempts with a message in a request that was denied
	refusals map[string]int  // of a topic's creation
	faults   []string
}

func (s *chaosService) faultf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// attemptOf is the attempt of a bundle that a message belongs to.
func attemptOf(m *pubsubpb.PubsubMessage) string { return m.Attributes["b"] }

func (s *chaosService) send(ctx context.Context, p *payload, _ int) error {
	r := new(pubsubpb.PublishRequest)
	if err := proto.Unmarshal(p.buf, r); err != nil {
		s.faultf("%v", err)
		return nil
	}
	s.checkCaps(r)
	answer, takes := s.begin(r)
	pass(time.Duration(takes) * time.Millisecond)
	return s.end(ctx, r, answer)
}

func (s *chaosService) checkCaps(r *pubsubpb.PublishRequest) {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &p.window
	if w.messages > w.maxMessages || w.bytes > w.maxBytes && w.messages > 1 {
		s.faultf("%d messages, %d bytes in flight", w.messages, w.bytes)
	}
	if n := len(r.Messages); n > p.opts.BatchElementCount || proto.Size(r) > p.opts.BatchBytes && n > 1 {
		s.faultf("a request of %d messages, %d bytes", n, proto.Size(r))
	}
	if n := len(p.topics.byTopic); n > p.topics.max {
		s.faultf("%d publishers", n)
	}
}

func (s *chaosService) begin(r *pubsubpb.PublishRequest) (answer scheduledAnswer, takes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls < len(s.plan.Schedule) {
		answer = s.plan.Schedule[s.calls]
	}
	takes = s.plan.Takes[s.calls%len(s.plan.Takes)]
	s.calls++
	key := r.Messages[0].OrderingKey
	lane := r.Topic + " " + key
	if s.busy[lane]++; key != "" && s.busy[lane] > 1 {
		s.faults = append(s.faults, "two requests at once of "+lane)
	}
	if s.onTopic[r.Topic]++; len(s.onTopic) > s.plan.Options.MaxActivePublishers {
		s.faults = append(s.faults, fmt.Sprintf("requests to %d topics at once", len(s.onTopic)))
	}
	return answer, takes
}

func (s *chaosService) end(ctx context.Context, r *pubsubpb.PublishRequest, answer scheduledAnswer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[r.Topic+" "+r.Messages[0].OrderingKey]--
	if s.onTopic[r.Topic]--; s.onTopic[r.Topic] == 0 {
		delete(s.onTopic, r.Topic)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch answer {
	case answerUnavailable:
		return status.Error(codes.Unavailable, "away")
	case answerQuota:
		return status.Error(codes.ResourceExhausted, "quota")
	case answerDenied:
		for _, m := range r.Messages {
			s.denied[attemptOf(m)] = true
		}
		return status.Error(codes.PermissionDenied, "no")
	case answerMissing: // a part of the service does not know it yet
		return status.Error(codes.NotFound, "no topic")
	case answerOK, answerStoredThenLate, answers:
	}
	if s.missing[r.Topic] {
		return status.Error(codes.NotFound, "no topic")
	}
	if err := poisoned(ctx, r); err != nil {
		return err
	}
	s.storeLocked(r)
	if answer == answerStoredThenLate {
		return status.Error(codes.DeadlineExceeded, "late")
	}
	return nil
}

func (s *chaosService) storeLocked(r *pubsubpb.PublishRequest) {
	key := r.Messages[0].OrderingKey
	lane := r.Topic + " " + key
	for _, m := range r.Messages {
		if m.OrderingKey != key {
			s.faults = append(s.faults, "two keys in a request")
		}
		if id := string(m.Data); !s.seen[id] {
			s.seen[id] = true
			s.stored[lane] = append(s.stored[lane], id)
		}
	}
}

func (s *chaosService) create(_ context.Context, topic string) error {
	pass(2 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	code := codes.OK
	if s.asked < len(s.plan.Creations) {
		code = s.plan.Creations[s.asked]
	}
	s.asked++
	switch code {
	case codes.OK, codes.AlreadyExists:
		s.missing[topic] = false
	case codes.PermissionDenied:
		s.refusals[topic]++
	default:
	}
	if code == codes.OK {
		return nil
	}
	return status.Error(code, "create")
}

// produce publishes the bundles of a producer, as a runner does.
func (s *chaosService) produce(ctx context.Context, producer int) {
	for i, plan := range s.plan.Producers[producer] {
		name := fmt.Sprintf("%d/%d", producer, i)
		most := len(plan.Drops) + len(s.plan.Schedule) + len(s.plan.Creations)
		for try := 0; ; try++ {
			if s.attempt(ctx, producer, name, try, plan) {
				break
			}
			if try > most {
				s.faultf("bundle %s does not succeed", name)
				return
			}
		}
	}
}

// attempt runs a bundle once, holds its end against the model, and reports whether it
// succeeded.
func (s *chaosService) attempt(ctx context.Context, producer int, name string, try int, plan chaosBundle) bool {
	before := s.creationRefusals(plan)
	attempt := fmt.Sprintf("%s/%d", name, try)
	routed := map[string]int{}
	b, _ := s.pool.begin(Handlers{
		Warn:   func(context.Context, string) {},
		Reject: func(_ context.Context, r Rejection) error { routed[string(r.Message.Data)]++; return nil },
	})
	dropped := make(chan struct{})
	if try < len(plan.Drops) {
		timer := time.AfterFunc(time.Duration(plan.Drops[try])*time.Millisecond, func() { close(dropped); b.Drop() })
		defer timer.Stop()
	}
	err := s.publish(ctx, b, producer, name, attempt, plan.Adds)
	b.Drop()
	if err == nil {
		s.checkSuccess(b, name, plan, routed)
		return true
	}
	select {
	case <-dropped:
		return false
	default:
	}
	if !s.excuses(err, attempt, s.creationRefusals(plan) > before) {
		s.faultf("attempt %s failed, and had no message in a request that did: %v", attempt, err)
	}
	return false
}

// excuses reports whether the service has given an attempt reason to end in err.
func (s *chaosService) excuses(err error, attempt string, creationRefused bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch status.Code(err) {
	case codes.PermissionDenied:
		return s.denied[attempt] || creationRefused
	case codes.NotFound:
		missing := 0
		for _, answer := range s.plan.Schedule {
			if answer == answerMissing {
				missing++
			}
		}
		return missing >= s.pool.opts.RecoveryMaxAttempts
	default:
		return false
	}
}

func (s *chaosService) publish(ctx context.Context, b *Bundle, producer int, name, attempt string, adds []chaosAdd) error {
	for j, add := range adds {
		pass(time.Duration(add.Wait) * time.Millisecond)
		m := &message.Message{
			Data:        []byte(add.id(name, j)),
			Attributes:  map[string]string{"b": attempt},
			OrderingKey: add.key(producer),
		}
		if err := b.Add(ctx, nthTopic(add.Topic), m, int64(j)); err != nil {
			return err
		}
	}
	return b.Finish(ctx)
}

func (a chaosAdd) id(bundle string, j int) string {
	if a.Poison {
		return fmt.Sprintf("bad%s/%d", bundle, j)
	}
	return fmt.Sprintf("%s/%d", bundle, j)
}

func (a chaosAdd) key(producer int) string {
	if a.Key == 0 {
		return ""
	}
	return fmt.Sprintf("p%d k%d", producer, a.Key)
}

func (s *chaosService) creationRefusals(plan chaosBundle) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[int]bool{}
	for _, add := range plan.Adds {
		if !seen[add.Topic] {
			seen[add.Topic] = true
			n += s.refusals[nthTopic(add.Topic)]
		}
	}
	return n
}

func (s *chaosService) checkSuccess(b *Bundle, name string, plan chaosBundle, routed map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	good, bad := 0, 0
	for j, add := range plan.Adds {
		id := add.id(name, j)
		switch {
		case !add.Poison && !s.seen[id]:
			s.faults = append(s.faults, "bundle "+name+" succeeded, and "+id+" was not published")
		case add.Poison && routed[id] != 1:
			s.faults = append(s.faults, fmt.Sprintf("bundle %s succeeded, and %s was routed %d times", name, id, routed[id]))
		}
		if add.Poison {
			bad++
		} else {
			good++
		}
	}
	if len(routed) != bad || b.Counts().Published != int64(good) {
		s.faults = append(s.faults, fmt.Sprintf("bundle %s: %d routed of %d, %d counted as published of %d", name, len(routed), bad, b.Counts().Published, good))
	}
}

// checkOrder holds what was stored against what the producers have added.
func (s *chaosService) checkOrder() {
	want := map[string][]string{}
	for producer, bundles := range s.plan.Producers {
		for i, plan := range bundles {
			for j, add := range plan.Adds {
				if !add.Poison {
					lane := nthTopic(add.Topic) + " " + add.key(producer)
					want[lane] = append(want[lane], add.id(fmt.Sprintf("%d/%d", producer, i), j))
				}
			}
		}
	}
	for lane, ids := range want {
		got := s.stored[lane]
		if strings.HasSuffix(lane, " ") { // no key, no order
			slices.Sort(got)
			slices.Sort(ids)
		}
		if !slices.Equal(got, ids) {
			s.faults = append(s.faults, fmt.Sprintf("%s:\n got %v\nwant %v", lane, got, ids))
		}
	}
}

// playChaos runs the plan in virtual time and returns what went wrong.
func playChaos(t *testing.T, plan chaosPlan) (fault error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &chaosService{
			plan: plan, missing: map[string]bool{}, busy: map[string]int{}, onTopic: map[string]int{}, stored: map[string][]string{},
			seen: map[string]bool{}, denied: map[string]bool{}, refusals: map[string]int{},
		}
		for i, missing := range plan.Missing {
			s.missing[nthTopic(i)] = missing
		}
		w := wire{send: s.send, create: s.create, hangUp: func() {}}
		s.pool = newPool(Config{Nonce: t.Name(), Publisher: plan.Options}.withDefaults(), w, func() {})
		var producers sync.WaitGroup
		for i := range plan.Producers {
			producers.Go(func() { s.produce(t.Context(), i) })
		}
		producers.Wait()
		pass(10 * time.Minute) // requests of dropped bundles end
		synctest.Wait()
		if w := s.pool.window; w.messages != 0 || w.bytes != 0 || len(w.waiting) != 0 || len(s.pool.topics.line) != 0 ||
			s.pool.filling.first != nil || s.pool.bundles != 0 || s.pool.parked != 0 {
			s.faultf("left in the pool: %+v, %d in line, %d bundles, %d parked", w, len(s.pool.topics.line), s.pool.bundles, s.pool.parked)
		}
		s.pool.shutDown()
		s.checkOrder()
		if len(s.faults) > 0 {
			fault = errors.New(strings.Join(s.faults, "\n"))
		}
	})
	return fault
}

// Whatever the service answers, and whenever bundles are dropped, beside each other,
// over few publishers and small caps: the first copies of a key come in order, one
// request at a time; nothing is lost; and only a bundle with a message in a request
// that was refused fails.
func TestPool_Chaos(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if err := playChaos(t, drawChaos(rt)); err != nil {
			rt.Fatal(err)
		}
	})
}
