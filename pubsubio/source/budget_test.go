package source

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// Prism runs the restrictions of a stage one after another in one bundle: the
// first must leave room for those that have messages too.
func TestBudget_IsSharedAmongReadersThatHaveMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		idle, other := fixtureIn(t, f.group, "idle"), fixtureIn(t, f.group, "other")
		defer idle.end()
		defer other.end()

		f.begin()
		f.service.deliver(5)
		synctest.Wait()
		b := newBudget(options.Subscriber{MaxRecordsPerBundle: 100, MaxBundleBytes: 1000}.WithDefaults())
		if n, size := b.share(f.group, other.reader); n != 50 || size != 500 {
			t.Errorf("the first share is %d and %d bytes, want half: one other reader has messages", n, size)
		}
		b.spend(50, 500)
		if n, size := b.share(f.group, f.reader); n != 50 || size != 500 {
			t.Errorf("the last share is %d and %d bytes, want what is left", n, size)
		}
		b.spend(50, 500)
		if n, size := b.share(f.group, idle.reader); n != 0 || size != 0 {
			t.Errorf("a share of an empty budget is %d and %d bytes", n, size)
		}
	})
}

func TestGroup_LimitIsCountedTogetherWhereOneProcessRunsAll(t *testing.T) {
	limit := Config{Limit: options.Limit{MaxMessages: 10}}
	for name, c := range map[string]struct {
		binding run.Binding
		want    bool
	}{
		"prism":   {run.Binding{Prism: true}, true},
		"direct":  {run.Binding{Rule: run.Pipeline}, true},
		"another": {run.Binding{}, false},
	} {
		if got := newGroup("limit", limit, c.binding, nil).quota != nil; got != c.want {
			t.Errorf("on %s the limit is shared: %v", name, got)
		}
	}
}

func TestQuota_GrantsNoMoreThanTheLimit(t *testing.T) {
	q := &quota{max: 10}
	for _, c := range []struct{ ask, want, taken int }{{7, 7, 7}, {7, 3, 1}, {7, 2, 2}, {1, 0, 0}} {
		got := q.reserve(c.ask)
		if got != c.want {
			t.Errorf("asked for %d, got %d, want %d", c.ask, got, c.want)
		}
		q.settle(got, c.taken)
	}
	if !q.used() || q.left() != 0 {
		t.Errorf("used %v, %d left", q.used(), q.left())
	}
}

// A reservation may be given back: another restriction that saw it as used ended
// for good, and with it whatever its subscription still had.
func TestQuota_ReservedIsNotUsed(t *testing.T) {
	q := &quota{max: 10}
	n := q.reserve(256)
	if q.used() {
		t.Error("the limit counts as used though nothing was taken")
	}
	q.settle(n, 0)
	if got := q.reserve(256); got != 10 {
		t.Errorf("got %d after everything was given back", got)
	}
}

func TestQuota_NilIsNoLimit(t *testing.T) {
	var q *quota
	if n := q.reserve(5); n != 5 {
		t.Errorf("reserved %d", n)
	}
	q.settle(5, 5)
	if q.used() || q.left() != -1 {
		t.Errorf("used %v, %d left", q.used(), q.left())
	}
}

// A bundle's limit in time is looked at between chunks.
func TestNextChunk(t *testing.T) {
	for _, c := range []struct {
		n    int
		took time.Duration
		want int
	}{
		{1, 0, 2}, {128, time.Millisecond, 256}, {256, 0, 256},
		{256, 4 * time.Millisecond, 256}, {256, time.Second, 128}, {1, time.Second, 1},
	} {
		if got := nextChunk(c.n, c.took); got != c.want {
			t.Errorf("after %d in %v comes %d, want %d", c.n, c.took, got, c.want)
		}
	}
}
