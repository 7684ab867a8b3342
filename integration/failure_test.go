package integration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// failures are the ways in which a DoFn fails a bundle.
var failures = map[string]func() error{
	"error": func() error { return errors.New("number 50 is broken") },
	"panic": func() error { panic("number 50 is broken") },
}

// failAt returns a probe that fails at number 50.
func failAt(fail func() error) *probe {
	return &probe{before: func(_ context.Context, m *message.Message) error {
		if string(m.Data) == "0000050" {
			return fail()
		}
		return nil
	}}
}

// A bundle that fails never sees FinishBundle: its messages stayed leased until
// their deadline, and those queued in the sink went out with the next bundle.
func TestPrism_AFailedBundleIsReturnedAtOnceAndComesAgain(t *testing.T) {
	for rule, run := range rules {
		for name, fail := range failures {
			t.Run(rule+", "+name, func(t *testing.T) {
				srv := newServer(t)
				publish(t, srv, inTopic, 0, 100)
				r := relayOf(srv, options.Limit{MaxMessages: 100})
				r.probe = failAt(fail)
				r.sink.Publisher.BatchDelay = time.Minute // Nothing leaves before the bundle's end.
				err := run(r, within(t, 20*time.Second))
				if err == nil || !strings.Contains(err.Error(), "number 50 is broken") {
					t.Errorf("the pipeline ended with %v", err)
				}
				if n := srv.Published(outTopic); n != 0 {
					t.Errorf("%d messages of the failed bundle were published", n)
				}
				// Without pubsubio.Run nobody closes the reader, but the bundle's
				// messages are returned all the same.
				must(t, srv.Await(within(t, 2*time.Second), inSub, func(s pubsubtest.Stats) bool { return s.Returned >= 50 }))
				if s := srv.Stats(inSub); s.Acknowledged != 0 {
					t.Errorf("messages of the failed bundle were acknowledged: %+v", s)
				}
			})
		}
	}
}

func TestPrism_AFailedBundleIsReadByTheNextRun(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			publish(t, srv, inTopic, 0, 100)
			r := relayOf(srv, options.Limit{MaxMessages: 100})
			r.probe = failAt(fail)
			if err := r.run(within(t, 20*time.Second)); err == nil {
				t.Fatal("the pipeline succeeded")
			}
			if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Outstanding != 0 || s.Backlog != 100 {
				t.Errorf("want everything returned once Run has returned: %+v", s)
			}
			r.probe = nil
			must(t, r.run(within(t, 20*time.Second)))
			if s := srv.Stats(inSub); s.Acknowledged != 100 || s.Lapsed != 0 {
				t.Errorf("want everything acknowledged, no lease lapsed: %+v", s)
			}
			expectArrived(t, srv, false)
			expectSettled(t, srv, inSub)
		})
	}
}

// The bundles before a failed one are committed and stay so.
func TestPrism_WhatWasCommittedBeforeAFailureStaysAcknowledged(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 100)
	r := relayOf(srv, options.Limit{})
	r.source.Subscriber.MaxRecordsPerBundle = 10
	r.probe = failAt(failures["error"])
	if err := r.run(within(t, 20*time.Second)); err == nil || !strings.Contains(err.Error(), "number 50 is broken") {
		t.Fatalf("the pipeline ended with %v", err)
	}
	s := srv.Stats(inSub)
	if s.Acknowledged < 10 || s.Acknowledged > 50 || s.Acknowledged+s.Backlog != 100 {
		t.Errorf("want the bundles before the failure acknowledged, the rest returned: %+v", s)
	}
	for d := range acknowledged(srv, inSub) {
		if d >= "0000050" {
			t.Errorf("%s was acknowledged", d)
		}
	}
	expectSettled(t, srv, inSub)
}

// A decoder's error is a bundle's too.
func TestPrism_ADecodeErrorReturnsTheBundle(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 20)
	err := runDecoding(within(t, 20*time.Second), srv, decodeBroken)
	if err == nil || !strings.Contains(err.Error(), "number 15 is broken") || !strings.Contains(err.Error(), inSub) {
		t.Errorf("the pipeline ended with %v", err)
	}
	if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Backlog != 20 {
		t.Errorf("want everything returned: %+v", s)
	}
	expectSettled(t, srv, inSub)
}

func TestPrism_ADecoderThatPanicsReturnsTheBundle(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 20)
	err := runDecoding(within(t, 20*time.Second), srv, decodePanicking)
	if err == nil || !strings.Contains(err.Error(), "number 15 is broken") {
		t.Errorf("the pipeline ended with %v", err)
	}
	if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Backlog != 20 {
		t.Errorf("want everything returned: %+v", s)
	}
	expectSettled(t, srv, inSub)
}

// A sink that cannot publish fails the bundle like any other step.
func TestPrism_ARefusedPublishReturnsTheBundle(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 20)
	srv.Answer("Publish", permissionDenied)
	err := relayOf(srv, options.Limit{}).run(within(t, 20*time.Second))
	if err == nil || !strings.Contains(err.Error(), "roles/pubsub.publisher") {
		t.Errorf("the pipeline ended with %v", err)
	}
	if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Backlog != 20 {
		t.Errorf("want everything returned: %+v", s)
	}
	if n := srv.Calls("Publish"); n > 2 {
		t.Errorf("%d publish calls after a refusal", n)
	}
	expectSettled(t, srv, inSub)
}

// awaitStreams waits until so many streams of a subscription are open.
func awaitStreams(ctx context.Context, t testing.TB, srv *pubsubtest.Server, subscription string, n int64) {
	t.Helper()
	must(t, srv.Await(ctx, subscription, func(s pubsubtest.Stats) bool { return s.Streams == n }))
}
