package publish

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A topicService has no topics until they are created, and shows them later.
type topicService struct {
	fakeService

	appears time.Duration // after the creation
	create  func(topic string) error

	lock      sync.Mutex // guards all below
	created   map[string]time.Time
	creations int
}

func newTopicService() *topicService {
	s := &topicService{created: make(map[string]time.Time)}
	s.answer = s.exists
	return s
}

func (s *topicService) exists(_ context.Context, r *pubsubpb.PublishRequest) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if at, ok := s.created[r.Topic]; !ok || time.Since(at) < s.appears {
		return status.Error(codes.NotFound, "Resource not found")
	}
	return nil
}

func (s *topicService) createTopic(_ context.Context, topic string) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.creations++
	if s.create != nil {
		if err := s.create(topic); err != nil {
			return err
		}
	}
	if _, ok := s.created[topic]; ok {
		return status.Error(codes.AlreadyExists, "Resource already exists")
	}
	s.created[topic] = time.Now()
	return nil
}

func (s *topicService) remove(topic string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.created, topic)
}

// newCreatingPool makes a pool that creates missing topics at s.
func newCreatingPool(t *testing.T, s *topicService, o options.Publisher) *pool {
	t.Helper()
	p := newTestPool(t, &s.fakeService, o)
	p.create = s.createTopic
	return p
}

func TestRecover_CreatesAMissingTopicOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopicService()
		s.appears = 30 * time.Second
		p := newCreatingPool(t, s, options.Publisher{BatchElementCount: 1})
		a, b := open(t, p), open(t, p)
		began := time.Now()
		for i := range 20 {
			mustAdd(t, a, fmt.Sprint("a", i))
			mustAdd(t, b, fmt.Sprint("b", i))
		}
		mustFinish(t, a)
		mustFinish(t, b)
		if s.creations != 1 || a.Counts().TopicsCreated+b.Counts().TopicsCreated != 1 {
			t.Errorf("%d creations, counted %d and %d", s.creations, a.Counts().TopicsCreated, b.Counts().TopicsCreated)
		}
		if took := time.Since(began); took < 30*time.Second || took > 45*time.Second {
			t.Errorf("took %v", took)
		}
		// Each request once while nobody knew, then one at a time.
		if s.calls > 40+40+10 {
			t.Errorf("%d requests", s.calls)
		}
		if got := len(s.data()); got != 40 {
			t.Errorf("%d messages published, want 40", got)
		}
	})
}

// The answer that a topic is missing may come after another request has created it and
// was stored: it says nothing of the topic as it is now.
func TestRecover_ALateAnswerCreatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopicService()
		slow := true // the first request: its answer takes long
		s.answer = func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			err := s.exists(ctx, r)
			s.lock.Lock()
			late := slow
			slow = false
			s.lock.Unlock()
			if late {
				pass(2 * time.Second)
			}
			return err
		}
		p := newCreatingPool(t, s, options.Publisher{BatchElementCount: 1})
		b := open(t, p)
		mustAdd(t, b, "slow")
		synctest.Wait() // its answer is on its way
		mustAdd(t, b, "quick")
		mustFinish(t, b)
		if got := len(s.data()); s.creations != 1 || got != 2 {
			t.Errorf("%d creations, %d messages published", s.creations, got)
		}
	})
}

// A creation by somebody else in between is a success.
func TestRecover_AlreadyExistsIsSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopicService()
		s.create = func(topic string) error { s.created[topic] = time.Now(); return nil }
		p := newCreatingPool(t, s, options.Publisher{})
		b := open(t, p)
		mustAdd(t, b, "a")
		mustFinish(t, b)
		if n := b.Counts().TopicsCreated; n != 0 {
			t.Errorf("%d topics counted as created", n)
		}
	})
}

func TestRecover_ARefusedCreationNamesThePermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopicService()
		s.create = func(string) error { return status.Error(codes.PermissionDenied, "User not authorized") }
		p := newCreatingPool(t, s, options.Publisher{BatchElementCount: 1})
		a, b := open(t, p), open(t, p)
		mustAdd(t, a, "a")
		mustAdd(t, b, "b")
		for _, bundle := range []*Bundle{a, b} {
			err := bundle.Finish(t.Context())
			if err == nil || !strings.Contains(err.Error(), "create "+topic) || !strings.Contains(err.Error(), "pubsub.topics.create") {
				t.Errorf("Finish: %v", err)
			}
		}
		if s.creations > 2 {
			t.Errorf("%d creations: a refusal is tried again", s.creations)
		}
	})
}

// What was on its way while the creation was refused does not ask for it again, also
// where it goes on in a part. What has found the topic since is another matter: a
// refusal that is over fails nobody.
func TestRecover_ARefusedCreationIsAskedForOnce(t *testing.T) {
	for name, c := range map[string]struct {
		between   func(t *testing.T, p *pool, s *topicService, other *Bundle, release func(error))
		creations int
		refused   bool
	}{
		"at once": {func(*testing.T, *pool, *topicService, *Bundle, func(error)) {}, 1, true},
		"in a part": {func(_ *testing.T, _ *pool, _ *topicService, other *Bundle, release func(error)) {
			release(status.Error(codes.Unavailable, "later"))
			synctest.Wait()
			other.Drop()
		}, 1, true},
		"granted meanwhile": {func(t *testing.T, p *pool, s *topicService, _ *Bundle, _ func(error)) {
			t.Helper()
			s.lock.Lock()
			s.create = nil
			s.lock.Unlock()
			b := open(t, p) // Asks again: somebody may have granted it.
			mustAdd(t, b, "later", "later too")
			mustFinish(t, b)
			s.lock.Lock()
			delete(s.created, topic) // So that only what the pool remembers can tell.
			s.lock.Unlock()
		}, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTopicService()
				s.create = func(string) error { return status.Error(codes.PermissionDenied, "User not authorized") }
				slow, release := hold()
				first := true
				s.answer = func(ctx context.Context, r *pubsubpb.PublishRequest) error {
					if string(r.Messages[0].Data) != "slow" {
						return s.exists(ctx, r)
					}
					if err := slow(ctx, r); err != nil && (first || c.refused) {
						first = false
						return err
					}
					return s.exists(ctx, r)
				}
				p := newCreatingPool(t, s, options.Publisher{BatchElementCount: 2})
				a, b, other := open(t, p), open(t, p), open(t, p)
				defer other.Drop()
				mustAdd(t, b, "slow")
				mustAdd(t, other, "slow's neighbour")
				synctest.Wait() // It is on the wire: else it would be parked, and never sent.
				mustAdd(t, a, "quick", "quick too")
				if err := a.Finish(t.Context()); err == nil {
					t.Error("the first bundle: no error")
				}
				c.between(t, p, s, other, release)
				go func() {
					release(status.Error(codes.NotFound, "Resource not found"))
					if !c.refused {
						release(nil)
					}
				}()
				err := b.Finish(t.Context())
				if c.refused != (err != nil) || c.refused && !strings.Contains(err.Error(), "pubsub.topics.create") {
					t.Errorf("the slow bundle: %v", err)
				}
				if s.creations != c.creations {
					t.Errorf("%d creations", s.creations)
				}
			})
		})
	}
}

func TestRecover_GivesUpAfterItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopicService()
		s.appears = time.Hour
		p := newCreatingPool(t, s, options.Publisher{RecoveryMaxAttempts: 4, RecoveryInitialBackoff: time.Second, RecoveryMaxBackoff: 2 * time.Second})
		b := open(t, p)
		mustAdd(t, b, "a")
		began := time.Now()
		err := b.Finish(t.Context())
		if err == nil || !strings.Contains(err.Error(), "options.Publisher.RecoveryMaxAttempts (4) is used up") || status.Code(err) != codes.NotFound {
			t.Errorf("Finish: %v", err)
		}
		// 1 + 2 + 2 + 2 s, ±25 %.
		if took := time.Since(began); took < 5250*time.Millisecond || took > 8750*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if s.calls != 5 {
			t.Errorf("%d requests, want the first and 4", s.calls)
		}
	})
}

// The pauses of a thousand workers must not fall together.
func TestRecover_PausesAreSpread(t *testing.T) {
	p := &pool{opts: options.Publisher{}.WithDefaults()}
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := p.recoveryPause(0)
		low, high = min(low, d), max(high, d)
	}
	if low < 375*time.Millisecond || low > 400*time.Millisecond || high < 600*time.Millisecond || high > 625*time.Millisecond {
		t.Errorf("pauses of %v to %v around 500 ms, want ±25 %%", low, high)
	}
	for attempts, most := range map[int]time.Duration{1: 1250 * time.Millisecond, 5: 12500 * time.Millisecond, 1000: 12500 * time.Millisecond} {
		if d := p.recoveryPause(attempts); d > most {
			t.Errorf("pause %d is %v", attempts, d)
		}
	}
}

func TestRecover_PausesAreThoseOfTheOptions(t *testing.T) {
	p := &pool{opts: options.Publisher{RecoveryInitialBackoff: time.Second, RecoveryMaxBackoff: 3 * time.Second}.WithDefaults()}
	for attempts, around := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		for range 100 {
			if d := p.recoveryPause(attempts); d < around*3/4 || d > around*5/4 {
				t.Errorf("pause %d is %v, not around %v", attempts, d, around)
			}
		}
	}
}

func TestRecover_ATopicDeletedLaterIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopicService()
		p := newCreatingPool(t, s, options.Publisher{})
		for range 3 {
			b := open(t, p)
			mustAdd(t, b, "a")
			mustFinish(t, b)
			s.remove(topic)
		}
		if s.creations != 3 {
			t.Errorf("%d creations, want 3", s.creations)
		}
	})
}

// Creating many topics under a quota: the calls back off, and few run at once.
func TestRecover_CreationsBackOff_C33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopicService()
		minute, inMinute := time.Now(), 0
		s.create = func(string) error {
			if time.Since(minute) >= time.Minute {
				minute, inMinute = time.Now(), 0
			}
			if inMinute++; inMinute > 100 {
				return status.Error(codes.ResourceExhausted, "Quota exceeded")
			}
			return nil
		}
		p := newCreatingPool(t, s, options.Publisher{MaxActivePublishers: 1000})
		b := open(t, p)
		for i := range 500 {
			if err := b.Add(t.Context(), fmt.Sprintf("projects/p/topics/t%03d", i), text("x"), 0); err != nil {
				t.Fatal(err)
			}
		}
		mustFinish(t, b)
		if got := b.Counts(); got.Published != 500 || got.TopicsCreated != 500 {
			t.Errorf("%d published, %d created", got.Published, got.TopicsCreated)
		}
		if s.creations > 500*15 {
			t.Errorf("%d calls to create 500 topics", s.creations)
		}
	})
}

// Whoever tries for the others may be dropped: another one goes on.
func TestRecover_ADroppedBundleHandsItsTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopicService()
		s.appears = 20 * time.Second
		p := newCreatingPool(t, s, options.Publisher{BatchElementCount: 1})
		a, b := open(t, p), open(t, p)
		mustAdd(t, a, "a")
		pass(time.Second)
		mustAdd(t, b, "b")
		pass(time.Second)
		synctest.Wait()
		if l := b.Load(); l.Messages != 2 || l.Parked == 0 {
			t.Errorf("load %+v", l)
		}
		a.Drop()
		synctest.Wait()
		if l := b.Load(); l.Messages != 1 {
			t.Errorf("a dropped bundle holds room: %+v", l)
		}
		mustFinish(t, b)
		if got := s.data(); len(got) != 1 || got[0] != "b" {
			t.Errorf("published %v", got)
		}
	})
}

// A bad message and a missing topic in one bundle.
func TestRecover_BesideABadMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopicService()
		s.answer = func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			if err := s.exists(ctx, r); err != nil {
				return err
			}
			return poisoned(ctx, r)
		}
		p := newCreatingPool(t, s, options.Publisher{})
		var routed []Rejection
		b := openWith(t, p, Handlers{Reject: collect(&routed)})
		mustAdd(t, b, "a", "bad", "c")
		if err := b.Add(t.Context(), otherTopic, text("d"), 0); err != nil {
			t.Fatal(err)
		}
		mustFinish(t, b)
		if got := s.data(); len(got) != 3 || len(routed) != 1 || s.creations != 2 {
			t.Errorf("published %v, routed %v, %d creations", got, routed, s.creations)
		}
	})
}
