package stats

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// Several bundles report at once: together they report everything, once.
func TestCount_IsTakenOnce(t *testing.T) {
	var c Count
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				c.Add(1)
				n := c.Take()
				if n < 0 {
					t.Errorf("took %d", n)
				}
				taken.Add(n)
			}
		})
	}
	wg.Wait()
	if got := taken.Load() + c.Take(); got != 8000 {
		t.Errorf("took %d of 8,000", got)
	}
}

func TestLatency_KeepsLittleWhereNobodyTakes(t *testing.T) {
	var l Latency
	for i := range 3 * maxFresh {
		l.Add(time.Duration(i))
	}
	if n := len(l.Take()); n != maxFresh || len(l.Take()) != 0 {
		t.Errorf("took %d", n)
	}
	if n, total, most := l.Load(); n != 3*maxFresh || total == 0 || most != 3*maxFresh-1 {
		t.Errorf("%d durations, %v in all, %v at most", n, total, most)
	}
}

func TestCodes_CountsWhatGRPCDoesNotKnowAsUnknown(t *testing.T) {
	var c Codes
	c.Add(99)
	c.Add(codes.Unauthenticated)
	if c[codes.Unknown].Take() != 1 || c[codes.Unauthenticated].Take() != 1 {
		t.Error("not counted")
	}
}
