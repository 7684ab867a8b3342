package source

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A message that is left is nobody's until the read ends: its bundle neither acknowledges
// nor returns it, its lease is extended, and it holds nothing back.
func TestReadFn_LeaveKeepsAMessageUntilTheReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPickyHarness(t, Leave())
		closed := false
		defer func() {
			if !closed {
				h.close(t.Context())
			}
		}()
		p := h.process(h.opened(first, 4))
		p.want("m1", "m2", "m3")
		p.end("")
		p.finalize()
		synctest.Wait()
		h.service.want(t, []string{"a1", "a3"}, nil)
		if h.owed() != 0 || h.group.counts.Left.Load() != 2 {
			t.Errorf("owed %d, left %d", h.owed(), h.group.counts.Left.Load())
		}
		pass(time.Minute)
		if extended := fmt.Sprint(h.service.modified); !strings.Contains(extended, "a2") || !strings.Contains(extended, "a4") {
			t.Errorf("extended: %s", extended)
		}
		if _, quiet := h.quietSince(); !quiet {
			t.Error("what is left keeps the read from being idle")
		}
		h.wantFollowing()
		h.close(t.Context())
		closed = true
		h.service.want(t, []string{"a1", "a3"}, []string{"a2", "a4"})
	})
}

// What is left comes again where its lease has lapsed: that is the same message, and its
// newest ack id is the one that returns it.
func TestReader_WhatIsLeftIsReturnedByItsNewestAckID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		a := f.emitting(1, 1)
		if err := f.setAside(a, "m1"); err != nil {
			t.Fatal(err)
		}
		f.service.send <- []*pubsubpb.ReceivedMessage{received("b1", "m1", time.Now())}
		synctest.Wait()
		if n := f.buffered(); n != 0 {
			t.Errorf("%d buffered", n)
		}
		f.end()
		f.service.want(t, nil, []string{"b1"})
	})
}

// A bundle that fails has nothing to do with what it left.
func TestReader_AFailedBundleReturnsNothingThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		a := f.emitting(2, 2)
		if err := f.setAside(a, "m1"); err != nil {
			t.Fatal(err)
		}
		f.fail(a)
		synctest.Wait()
		f.service.want(t, nil, []string{"a2"})
		f.end()
		f.service.want(t, nil, []string{"a1", "a2"})
	})
}

// Where nothing more can come, because everything that may be outstanding is left, a
// read would wait for ever.
func TestReader_LeavingAllThatMayBeOutstandingIsAnError(t *testing.T) {
	for name, o := range map[string]options.Subscriber{
		"messages": {MaxOutstandingMessages: 2},
		"bytes":    {MaxOutstandingBytes: 60},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber = o })
				defer f.end()
				a := f.emitting(2, 2)
				if err := f.setAside(a, "m1"); err != nil {
					t.Fatal(err)
				}
				err := f.setAside(a, "m2")
				if err == nil || !strings.Contains(err.Error(), "2 messages") || !strings.Contains(err.Error(), "raise options.Subscriber.MaxOutstandingMessages and MaxOutstandingBytes") {
					t.Errorf("error %v", err)
				}
				if f.check(a) == nil {
					t.Error("the reader goes on")
				}
			})
		})
	}
}

func TestConfig_LeaveIsRefusedBesidePerKey(t *testing.T) {
	err := Config{Subscriptions: From(testSubscription), Ordering: options.PerKey, OnDecodeFailure: Leave()}.Validate()
	if err == nil || !strings.HasPrefix(err.Error(), "source.Config.OnDecodeFailure: source.Leave(): must be another policy beside Ordering options.PerKey") {
		t.Errorf("error %v", err)
	}
}
