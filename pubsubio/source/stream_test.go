package source

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// logged runs f and returns what was logged at warning level or above.
func logged(t *testing.T, f func()) string {
	t.Helper()
	var b bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelWarn})))
	defer slog.SetDefault(before)
	f()
	return b.String()
}

// failNext claims a bundle and returns why it cannot be.
func (f *fixture) failNext() error {
	f.n++
	_, err := f.claim(f.token, f.parent, "next", true)
	return err
}

// C16: a stream that cannot be opened is not asked for more than once a second,
// whatever the status, and reading goes on as soon as it can.
func TestStream_C16_ReopensAtMostOnceASecond(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.Internal, codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.ResourceExhausted, codes.Canceled, codes.Unauthenticated} {
		t.Run(code.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, run.Finalized, nil)
				defer f.end()
				f.service.set(func(s *fakeService) { s.openErr = status.Error(code, "trouble") })
				a := f.begin()
				warnings := logged(t, func() { pass(5 * time.Minute) })
				f.service.set(func(s *fakeService) {
					for i := 1; i < len(s.opened); i++ {
						if gap := s.opened[i].Sub(s.opened[i-1]); gap < reopenMin {
							t.Errorf("opened again after %v", gap)
						}
					}
					s.openErr = nil
				})
				if n := strings.Count(warnings, "nothing can be received"); n < 3 || n > 6 {
					t.Errorf("%d warnings in five minutes, want about one a minute:\n%s", n, warnings)
				}
				if !strings.Contains(warnings, code.String()) {
					t.Errorf("no warning carries the status:\n%s", warnings)
				}
				pass(15 * time.Second)
				f.wantReading(a)
			})
		})
	}
}

// C17: the service closes a stream every half hour; that is no news.
func TestStream_C17_RoutineClosesAreSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.begin()
		warnings := logged(t, func() {
			for range 50 {
				pass(30 * time.Minute)
				f.service.end <- status.Error(codes.Unavailable, "the service closes streams every half hour")
			}
			pass(time.Minute)
		})
		if warnings != "" {
			t.Errorf("routine closes are reported:\n%s", warnings)
		}
		if err := f.check(a); err != nil {
			t.Errorf("routine closes fail the bundle: %v", err)
		}
	})
}

// A stream that ended with OK before it had brought anything failed the read.
func TestStream_C16_EndWithoutAnErrorIsReopened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.begin()
		synctest.Wait()
		f.service.end <- io.EOF
		pass(2 * reopenMin)
		if err := f.check(a); err != nil {
			t.Fatalf("the bundle fails: %v", err)
		}
		f.wantReading(a)
	})
}

// C18: a permission that was revoked must not be retried in silence.
func TestStream_C18_PermissionDeniedFailsTheNextBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.service.set(func(s *fakeService) { s.openErr = status.Error(codes.PermissionDenied, "no") })
		f.begin()
		synctest.Wait()
		err := f.failNext()
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), testSubscription) || !strings.Contains(err.Error(), "pubsub.subscriptions.consume") {
			t.Errorf("error %v, want PermissionDenied naming subscription and permission", err)
		}
		pass(time.Hour / 60)
		f.service.set(func(s *fakeService) {
			if len(s.opened) != 1 {
				t.Errorf("asked %d times after a refusal", len(s.opened))
			}
		})
	})
}

// C20: a typo in the subscription's name must end in an error, not in a hot loop;
// a subscription that was just created may be unknown for some seconds.
func TestStream_C20_NotFoundIsToleratedForAWhile(t *testing.T) {
	t.Run("then found", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, run.Finalized, nil)
			defer f.end()
			f.service.set(func(s *fakeService) { s.openErr = status.Error(codes.NotFound, "new") })
			a := f.begin()
			pass(5 * time.Second)
			f.service.set(func(s *fakeService) { s.openErr = nil })
			f.wantReading(a)
		})
	})
	t.Run("never found", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, run.Finalized, nil)
			defer f.end()
			f.service.set(func(s *fakeService) { s.openErr = status.Error(codes.NotFound, "typo") })
			f.begin()
			pass(30 * time.Second)
			if err := f.failNext(); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), testSubscription) {
				t.Errorf("error %v, want NotFound naming the subscription", err)
			}
			f.service.set(func(s *fakeService) {
				if len(s.opened) > 5 {
					t.Errorf("asked %d times for a subscription that is not there, want at most 5", len(s.opened))
				}
			})
		})
	})
}

func TestStream_PingsWhileOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.begin()
		pass(pingInterval*4 + time.Second)
		f.service.set(func(s *fakeService) {
			if s.pinged != 4 {
				t.Errorf("pinged %d times, want 4", s.pinged)
			}
		})
	})
}

// What the transport held of a stream that was cancelled stayed leased for a
// minute, and nobody had it.
func TestStream_ReturnsWhatIsOnItsWayWhenItCloses(t *testing.T) {
	for name, deaf := range map[string]bool{"the service ends the stream": false, "the service does not": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, run.Finalized, nil)
				f.begin()
				f.service.deliver(1)
				synctest.Wait()
				f.service.set(func(s *fakeService) {
					s.deaf = deaf
					s.onItsWay = []*pubsubpb.ReceivedMessage{received("a2", "m2", time.Now()), received("a3", "m3", time.Now())}
				})
				began := time.Now()
				f.end()
				f.service.want(t, nil, []string{"a1", "a2", "a3"})
				if took := time.Since(began); took > f.hangUpTimeout() {
					t.Errorf("closing took %v", took)
				}
			})
		})
	}
}

// A stream that was closed while it opened was cut off, also where the service
// had its first request and had answered: what it had sent stayed leased for a
// minute, and nobody had it.
func TestStream_ReturnsWhatItAskedForWhenItClosesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.service.set(func(s *fakeService) {
			s.onItsWay = []*pubsubpb.ReceivedMessage{received("a1", "m1", time.Now()), received("a2", "m2", time.Now())}
			s.asked = f.stop
		})
		f.begin()
		synctest.Wait()
		f.service.want(t, nil, []string{"a1", "a2"})
	})
}

// On a slow machine a second was over before everything had come, and the rest
// stayed leased for a minute.
func TestStream_WaitsForHalfOfShutdownTimeoutForWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.ShutdownTimeout = 20 * time.Second })
		defer f.end()
		f.service.set(func(s *fakeService) { s.deaf = true })
		f.begin()
		synctest.Wait()
		f.stop()
		pass(9 * time.Second)
		f.service.deliver(2)
		pass(2 * time.Second)
		f.service.want(t, nil, []string{"a1", "a2"})
		if f.owed() != 0 {
			t.Errorf("%d messages are owed once the stream was cut off", f.owed())
		}
	})
}
