package source

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// newTestSettler makes a settler of plain ids over send; what ended is in ends.
func newTestSettler(budget time.Duration, send func(context.Context, []string) error) (s *settler[string], ends *[]error) {
	ends = new([]error)
	s = &settler[string]{
		ids:    func(ids []string) []string { return ids },
		send:   send,
		budget: budget,
		done: func(_, _ []string, err error) []string {
			*ends = append(*ends, err)
			return nil
		},
		answered: new(broadcast),
	}
	return s.start(), ends
}

// settle runs s until everything has its answer.
func settle(t *testing.T, s *settler[string]) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go s.run(ctx)
	s.flush(ctx)
	cancel()
	synctest.Wait()
}

// Ack ids have grown past 210 bytes, and a request of 2,500 then passed the
// service's 512 KiB.
func TestSettler_SizesRequestsByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		sent := 0
		s, _ := newTestSettler(0, func(_ context.Context, ids []string) error {
			size := 0
			for _, id := range ids {
				size += len(id) + 4
			}
			sizes = append(sizes, size)
			sent += len(ids)
			return nil
		})
		ids := make([]string, 10_000)
		for i := range ids {
			ids[i] = strings.Repeat("x", 220)
		}
		s.add(ids)
		settle(t, s)
		if sent != len(ids) {
			t.Errorf("%d ids were sent, want %d", sent, len(ids))
		}
		for _, size := range sizes {
			if size > 512<<10 {
				t.Errorf("a request has %d bytes", size)
			}
		}
		if len(sizes) > 5 {
			t.Errorf("%d requests for 2.2 MB", len(sizes))
		}
	})
}

func TestSettler_OneGiantIDIsSentAlone(t *testing.T) {
	if n := fitting([]string{strings.Repeat("x", 600<<10), "y"}); n != 1 {
		t.Errorf("%d ids fit, want the giant alone", n)
	}
	if n := fitting(nil); n != 0 {
		t.Errorf("%d of no ids fit", n)
	}
}

func TestSettler_GivesUpWhenItsBudgetIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		start := time.Now()
		s, ends := newTestSettler(30*time.Second, func(context.Context, []string) error {
			tries++
			return errDown
		})
		s.add([]string{"a"})
		settle(t, s)
		if took := time.Since(start); took > 30*time.Second || took < 15*time.Second {
			t.Errorf("gave up after %v, want about 30s", took)
		}
		if len(*ends) != 1 || status.Code((*ends)[0]) != codes.Unavailable || tries < 4 {
			t.Errorf("ended with %v after %d tries", *ends, tries)
		}
	})
}

func TestSettler_WithoutABudgetNeverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(3 * time.Hour)
		s, ends := newTestSettler(0, func(context.Context, []string) error {
			if time.Now().Before(up) {
				return errDown
			}
			return nil
		})
		s.add([]string{"a"})
		settle(t, s)
		if len(*ends) != 1 || (*ends)[0] != nil {
			t.Errorf("ended with %v", *ends)
		}
	})
}

// A call that is never answered must not hold up the others for ever.
func TestSettler_AttemptHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		s, ends := newTestSettler(0, func(ctx context.Context, _ []string) error {
			if tries++; tries == 1 {
				<-ctx.Done()
				return status.FromContextError(ctx.Err()).Err()
			}
			return nil
		})
		s.add([]string{"a"})
		settle(t, s)
		if tries != 2 || len(*ends) != 1 || (*ends)[0] != nil {
			t.Errorf("ended with %v after %d tries", *ends, tries)
		}
	})
}

func TestSettler_PermanentErrorIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		s, _ := newTestSettler(0, func(context.Context, []string) error {
			tries++
			return status.Error(codes.PermissionDenied, "no")
		})
		s.add([]string{"a"})
		settle(t, s)
		if tries != 1 {
			t.Errorf("tried %d times", tries)
		}
	})
}

// A server that is just back may know a subscription later than the stream does.
func TestSettler_NotFoundIsToleratedForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		missing time.Duration
		want    codes.Code
	}{
		"then found":  {5 * time.Second, codes.OK},
		"never found": {time.Hour, codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				found := time.Now().Add(c.missing)
				s, ends := newTestSettler(0, func(context.Context, []string) error {
					if time.Now().Before(found) {
						return status.Error(codes.NotFound, "no such subscription")
					}
					return nil
				})
				s.add([]string{"a"})
				settle(t, s)
				if len(*ends) != 1 || status.Code((*ends)[0]) != c.want {
					t.Errorf("ended with %v, want %v", *ends, c.want)
				}
			})
		})
	}
}

func TestSettler_FlushEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newTestSettler(0, func(context.Context, []string) error { return errors.New("never called") })
		s.add([]string{"a"}) // Nobody runs it.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.flush(ctx)
		if ctx.Err() == nil {
			t.Error("flush returned though an id has no answer")
		}
	})
}
