package source

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fit"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// A split that the runner does not come back for kept what it held from all other
// subscribers for a minute.
func TestPark_APausedSplitReturnsItsBuffer(t *testing.T) {
	for name, when := range map[string]func(*fixture){
		"it becomes paused with a full buffer": func(f *fixture) {
			f.service.deliver(4)
			pass(pausedAfter - time.Second)
			f.service.want(f.t, nil, nil) // The runner may be late.
			pass(time.Second + tendInterval)
		},
		"its buffer becomes full when it is paused": func(f *fixture) {
			pass(pausedAfter + time.Second)
			f.service.deliver(4)
			synctest.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.MaxOutstandingMessages = 8 })
				defer f.end()
				f.finish(f.begin(), 0)
				synctest.Wait()
				when(f)
				f.service.want(t, nil, []string{"a1", "a2", "a3", "a4"})
				if p, n, s := f.counts.ParkedSplits.Load(), f.counts.SplitsParked.Load(), f.counts.OpenStreams.Load(); p != 1 || n != 1 || s != 0 {
					t.Errorf("%d splits are parked, %d ever were, %d streams are open", p, n, s)
				}
				a := f.begin()
				f.wantReading(a)
				if p, s := f.counts.ParkedSplits.Load(), f.counts.OpenStreams.Load(); p != 0 || s != 1 {
					t.Errorf("claimed again, %d splits are parked and %d streams open", p, s)
				}
			})
		})
	}
}

func TestPark_BytesCountToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.PausedBufferMaxBytes = 10 })
		defer f.end()
		f.finish(f.begin(), 0)
		f.service.deliver(1)
		pass(pausedAfter + tendInterval)
		f.service.want(t, nil, []string{"a1"})
	})
}

// What is emitted and not committed stays: the runner may still commit it.
func TestPark_LeavesWhatIsEmittedAndWhatIsBelowTheCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.PausedBufferMaxMessages = 3 })
		defer f.end()
		a := f.emitting(4, 2)
		pass(2 * pausedAfter) // A bundle that takes long is no pause.
		f.finish(a, 2)
		pass(2 * pausedAfter)
		f.service.want(t, nil, nil)
		f.service.deliver(3) // The first two again, and one more: m3 is buffered already.
		pass(idleTimeout)
		f.signal(a, signalAt(1, 2))
		synctest.Wait()
		f.service.set(func(s *fakeService) {
			if len(s.acked) != 2 || len(s.returned) == 0 {
				t.Errorf("acknowledged %v, returned %v", s.acked, s.returned)
			}
		})
	})
}

// C06: a reader hoarded the backlog and another got nothing.
func TestPark_C06_TheReaderTakesNoMoreThanItMayHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.MaxOutstandingMessages = 1 })
		defer f.end()
		f.begin()
		f.service.deliver(1)
		for range 12 {
			pass(5 * time.Second)
			if f.service.offer() {
				t.Fatal("the stream is read beyond the one message that the reader may hold")
			}
		}
		f.service.set(func(s *fakeService) {
			if n := s.requests[0].GetMaxOutstandingMessages(); n != 1 {
				t.Errorf("the service may send %d", n)
			}
		})
	})
}

// A topic that is deleted under a running pipeline: its streams do not tell.
func TestTopicWatch_C21_WarnsOnceThatTheTopicIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.service.set(func(s *fakeService) { s.is = subscriptionOf("projects/p/topics/t") })
		idle := func(d time.Duration) string {
			return logged(t, func() {
				for range d / (10 * time.Second) {
					f.finish(f.begin(), 0)
					pass(10 * time.Second)
				}
			})
		}
		if w := idle(time.Hour); w != "" {
			t.Errorf("warned of a topic that is there:\n%s", w)
		}
		f.service.set(func(s *fakeService) {
			if s.looked < 6 || s.looked > 12 {
				t.Errorf("looked %d times in an hour", s.looked)
			}
			s.is = subscriptionOf(fit.DeletedTopic)
		})
		if w := idle(time.Hour); strings.Count(w, "the topic was deleted") != 1 || strings.Count(w, testSubscription) != 1 {
			t.Errorf("want one warning of it:\n%s", w)
		}
	})
}

// Whoever reads a subscription may not be permitted to look at it.
func TestTopicWatch_DoesNotAskAgainWhereItMayNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.service.set(func(s *fakeService) { s.getErr = status.Error(codes.PermissionDenied, "no") })
		warnings := logged(t, func() {
			for range 360 {
				f.finish(f.begin(), 0)
				pass(10 * time.Second)
			}
		})
		f.service.set(func(s *fakeService) {
			if s.looked != 1 || warnings != "" {
				t.Errorf("looked %d times and warned:\n%s", s.looked, warnings)
			}
		})
	})
}

// A subscription that brings something has a topic.
func TestTopicWatch_DoesNotAskWhileMessagesCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		for range 60 {
			a := f.emitting(1, 1)
			f.finish(a, 1)
			f.signal(a, signalAt(1, 2))
			f.begin()
			pass(time.Minute)
		}
		f.service.set(func(s *fakeService) {
			if s.looked != 0 {
				t.Errorf("looked %d times", s.looked)
			}
		})
	})
}

func subscriptionOf(topic string) *pubsubpb.Subscription {
	return &pubsubpb.Subscription{Name: testSubscription, Topic: topic}
}
