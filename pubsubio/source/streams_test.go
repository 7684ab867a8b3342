package source

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// newStreamsFixture makes a reader of n streams.
func newStreamsFixture(t *testing.T, n int, adjust func(*Config)) *fixture {
	t.Helper()
	return newFixture(t, run.Finalized, func(c *Config) {
		c.Subscriber.Streams = n
		if adjust != nil {
			adjust(c)
		}
	})
}

func TestStreams_DivideTheBudgetAndKeepTheirIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStreamsFixture(t, 3, func(c *Config) {
			c.Subscriber.MaxOutstandingMessages, c.Subscriber.MaxOutstandingBytes = 11, 100
		})
		defer f.end()
		f.begin()
		synctest.Wait()
		for range 3 {
			f.service.end <- status.Error(codes.Unavailable, "routine")
		}
		pass(time.Minute)
		var messages, bytes int64
		ids := make(map[string]int)
		f.service.set(func(s *fakeService) {
			for _, request := range s.requests {
				ids[request.GetClientId()]++
				messages += request.GetMaxOutstandingMessages()
				bytes += request.GetMaxOutstandingBytes()
				if request.GetMaxOutstandingMessages() < 3 || request.GetMaxOutstandingBytes() < 33 || request.GetProtocolVersion() != 1 {
					t.Errorf("a stream asked for %v", request)
				}
			}
		})
		if len(ids) != 3 || messages != 2*11 || bytes != 2*100 {
			t.Errorf("opened twice, the streams have the ids %v and ask for %d messages and %d bytes in all", ids, messages, bytes)
		}
	})
}

// Whichever stream brings them, the messages are one reader's: the budget is that of
// the split, and all of it is returned at the end.
func TestStreams_ShareTheBufferAndTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStreamsFixture(t, 2, func(c *Config) { c.Subscriber.MaxOutstandingMessages = 4 })
		a := f.begin()
		f.service.deliver(2)
		f.service.send <- []*pubsubpb.ReceivedMessage{received("a3", "m3", time.Now()), received("a4", "m4", time.Now())}
		synctest.Wait()
		if f.service.offer() { // One of them had passed the gate before.
			synctest.Wait()
			if f.service.offer() {
				t.Error("both streams are read though the split holds all that it may")
			}
		}
		if got := f.takeIDs(a, 2); len(got) != 2 {
			t.Errorf("took %v", got)
		}
		f.end()
		f.service.set(func(s *fakeService) {
			if len(s.returned) < 4 || len(s.acked) > 0 {
				t.Errorf("returned %v, acknowledged %v", s.returned, s.acked)
			}
		})
		if n := f.counts.OpenStreams.Load(); n != 0 {
			t.Errorf("%d streams count as open", n)
		}
	})
}

// C19: the quota of streaming pulls hid behind retries.
func TestStreams_C19_SomeAreRefusedAndTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStreamsFixture(t, 8, nil)
		defer f.end()
		const text = "Quota exceeded for quota metric 'StreamingPull connections'"
		quota := status.Error(codes.ResourceExhausted, text)
		f.service.set(func(s *fakeService) { s.refuse = map[string]error{"-6": quota, "-7": quota} })
		a := f.begin()
		warnings := logged(t, func() { pass(5 * time.Minute) })
		if n := strings.Count(warnings, text); n < 3 || n > 6 || !strings.Contains(warnings, "open=6 of=8") {
			t.Errorf("%d warnings of the quota in five minutes, want about one a minute:\n%s", n, warnings)
		}
		for range 100 {
			pass(time.Second)
			if n := f.counts.OpenStreams.Load(); n != 6 {
				t.Fatalf("%d streams count as open, not 6", n)
			}
		}
		f.wantReading(a)
		if n := f.counts.Errors[codes.ResourceExhausted].Load(); n < 10 {
			t.Errorf("%d refusals are counted", n)
		}
		// Nothing was ever leased to the two: they hold the watermark no longer.
		f.finish(a, 1)
		f.signal(a, signalAt(1, 2))
		f.begin()
		pass(forsakenAfter)
		if w := f.watermark(time.Now()); time.Since(w) > time.Minute {
			t.Errorf("two streams that are refused hold the watermark at %v", w)
		}
		f.service.set(func(s *fakeService) { s.refuse = nil })
		pass(time.Minute)
		if n := f.counts.OpenStreams.Load(); n != 8 {
			t.Errorf("%d streams count as open once there is quota", n)
		}
	})
}

// A stream that is down may hold messages that nobody has.
func TestStreams_TheWatermarkWaitsForEachStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStreamsFixture(t, 2, nil)
		defer f.end()
		f.service.set(func(s *fakeService) { s.refuse = map[string]error{"-1": status.Error(codes.Unavailable, "down")} })
		f.begin()
		pass(time.Minute)
		if w := f.watermark(time.Now()); !w.IsZero() {
			t.Errorf("the watermark is at %v while a stream is down", w)
		}
	})
}

func TestStreams_APermanentRefusalOfOneFailsTheNextBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStreamsFixture(t, 2, nil)
		defer f.end()
		f.service.set(func(s *fakeService) {
			s.refuse = map[string]error{"-1": status.Error(codes.PermissionDenied, "no")}
		})
		f.begin()
		synctest.Wait()
		if err := f.failNext(); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "pubsub.subscriptions.consume") {
			t.Errorf("error %v", err)
		}
	})
}

// What one stream brings while all are being closed would come again on another
// that has not closed yet.
func TestStreams_WhatComesLateIsReturnedWhenAllHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStreamsFixture(t, 2, nil)
		defer f.end()
		f.begin()
		synctest.Wait()
		f.service.set(func(s *fakeService) { s.deaf = true })
		f.stop()
		f.service.deliver(1)
		pass(f.hangUpTimeout() / 2)
		f.service.want(t, nil, nil)
		if f.owed() != 1 {
			t.Errorf("%d messages are owed", f.owed())
		}
		pass(f.hangUpTimeout())
		f.service.want(t, nil, []string{"a1"})
	})
}

// C16: a stream went quiet without an error.
func TestStream_C16_AServerThatFallsSilentIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.service.set(func(s *fakeService) { s.keepsAlive = true })
		a := f.begin()
		pass(10 * time.Minute)
		opened := func() (n int) { f.service.set(func(s *fakeService) { n = len(s.opened) }); return n }
		if n := opened(); n != 1 {
			t.Fatalf("a stream whose pings are answered was opened %d times", n)
		}
		f.service.set(func(s *fakeService) { s.keepsAlive = false })
		began := time.Now()
		for opened() < 2 {
			pass(time.Second)
			if time.Since(began) > time.Minute {
				t.Fatal("the stream is kept though its server is silent")
			}
		}
		f.wantReading(a)
		// A server may be silent from the start of the next stream on.
		pass(2 * time.Minute)
		if n := opened(); n < 3 {
			t.Error("the next stream is kept though its server is silent")
		}
	})
}

// Emulators before 0.8.32 do not answer pings: an idle stream was torn down every
// 45 s.
func TestStream_AServerThatNeverAnswersPingsIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.begin()
		synctest.Wait()
		// An empty response may tell other things than that it is an answer.
		f.service.send <- nil
		pass(time.Hour)
		f.wantReading(a)
		pass(time.Hour)
		f.service.set(func(s *fakeService) {
			if len(s.opened) != 1 {
				t.Errorf("the stream was opened %d times", len(s.opened))
			}
		})
	})
}

// A reader at its caps does not look for answers: they wait in the transport.
func TestStream_AReaderAtItsCapsMissesNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.BufferMaxMessages = 1 })
		defer f.end()
		f.service.set(func(s *fakeService) { s.keepsAlive = true })
		f.begin()
		pass(2 * time.Minute)
		f.service.deliver(1)
		f.service.set(func(s *fakeService) { s.keepsAlive = false })
		pass(10 * time.Minute)
		f.service.set(func(s *fakeService) {
			if len(s.opened) != 1 {
				t.Errorf("the stream was opened %d times", len(s.opened))
			}
		})
	})
}

// A subscription that is deleted and created again is another one: reading on
// would hide that messages are lost.
func TestStream_ASubscriptionThatWasDeletedFailsTheRead(t *testing.T) {
	missing := status.Error(codes.NotFound, "Resource not found (resource=input).")
	for name, adjust := range map[string]func(*fixture){
		// The next opening would work: it was created again.
		"its stream ends": func(f *fixture) { f.service.end <- missing },
		"its next stream is refused": func(f *fixture) {
			f.service.set(func(s *fakeService) { s.openErr = missing })
			f.service.end <- status.Error(codes.Unavailable, "routine")
			pass(2 * reopenMin)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, run.Finalized, nil)
				defer f.end()
				f.begin()
				f.service.deliver(1)
				pass(missingGrace)
				adjust(f)
				synctest.Wait()
				err := f.failNext()
				if status.Code(err) != codes.NotFound {
					t.Fatalf("error %v", err)
				}
				for _, want := range []string{testSubscription, "NotFound", "was deleted", "start the job anew"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error does not say %q: %v", want, err)
					}
				}
			})
		})
	}
}

// Acknowledgements and returns of a subscription that is gone are refused, also
// where the stream has not noticed.
func TestReader_AcknowledgementsOfADeletedSubscriptionFailTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.committing(1, status.Error(codes.NotFound, "gone"))
		pass(missingGrace + 5*time.Second)
		if err := f.failNext(); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), testSubscription) {
			t.Errorf("error %v", err)
		}
	})
}

// C18: an expired token is not a missing permission. It is tried again, with a
// warning a minute, however long.
func TestStream_C18_UnauthenticatedForFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStreamsFixture(t, 4, nil)
		defer f.end()
		f.service.set(func(s *fakeService) { s.openErr = status.Error(codes.Unauthenticated, "expired") })
		a := f.begin()
		warnings := logged(t, func() { pass(5 * time.Minute) })
		if n := strings.Count(warnings, "expired"); n < 4 || n > 6 {
			t.Errorf("%d warnings in five minutes:\n%s", n, warnings)
		}
		f.service.set(func(s *fakeService) { s.openErr = nil })
		pass(2 * reopenMax)
		f.wantReading(a)
	})
}

// C17 counts what it does not report.
func TestStream_C17_RoutineClosesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.begin()
		for range 50 {
			pass(30 * time.Minute)
			f.service.end <- status.Error(codes.Unavailable, "routine")
		}
		synctest.Wait()
		if n := f.counts.StreamsReopened.Load(); n != 50 {
			t.Errorf("%d of 50 are counted", n)
		}
		if n := f.counts.Errors[codes.Unavailable].Load(); n != 0 {
			t.Errorf("%d count as errors", n)
		}
	})
}

// Exactly-once delivery that is turned on, or order that is lost, while the
// subscription is read.
func TestStream_PropertiesThatCannotBeReadFailTheNextBundle(t *testing.T) {
	type properties = pubsubpb.StreamingPullResponse_SubscriptionProperties
	for name, tc := range map[string]struct {
		perKey bool
		told   *properties
		want   string
	}{
		"exactly once":      {false, &properties{ExactlyOnceDeliveryEnabled: true}, "turn exactly-once delivery off"},
		"unordered per key": {true, &properties{}, "options.PerKey"},
		"ordered per key":   {true, &properties{MessageOrderingEnabled: true}, ""},
		"plain":             {false, &properties{}, ""},
		"not told":          {true, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{}
			if tc.perKey {
				cfg.Ordering = options.PerKey
			}
			r := &reader{subscription: testSubscription, config: cfg}
			err := r.refuses(tc.told)
			if (err != nil) != (tc.want != "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), testSubscription)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestPart_PartsMakeTheTotal(t *testing.T) {
	for _, total := range []int64{5, 7, 100_000_000} {
		var parts []int64
		for i := range 5 {
			parts = append(parts, part(total, i, 5))
		}
		var sum int64
		for _, p := range parts {
			sum += p
		}
		if sum != total || slices.Max(parts)-slices.Min(parts) > 1 {
			t.Errorf("%d in parts: %v", total, parts)
		}
	}
}
