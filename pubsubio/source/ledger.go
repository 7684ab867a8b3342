package source

import (
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// A ledger knows which emitted messages may be acknowledged. It is a list of
// attempts, one for each time that a bundle claimed the reader, in claim order.
// An attempt's messages are staged until they are committed, and acknowledged,
// or abandoned, and returned.
//
// Attempts are named by random tokens. A restriction carries the token of the
// attempt that it resumes and that one's parent, so a claim says which past it
// knows: what the ledger holds beyond that past was rolled back by the runner
// and is abandoned. A number would not do: it is used again when a work item is
// retried, reassigned to another worker and back, or rolled back, and a late
// signal would then acknowledge messages that were never made durable.
//
// The reader's mutex guards a ledger.
type ledger struct {
	rule     run.Rule
	attempts []*attempt
	owed     int // messages staged in any attempt
	// signaled is how many of the first attempts have had a signal. A signal counts for
	// all before, so these are the first, and their firstSignal never falls.
	signaled int
	byToken  map[string]*attempt
	// onCommit hears of each attempt with messages that is committed; nil for
	// nobody.
	onCommit func(*attempt)
}

// An attempt is one bundle's hold on the reader.
type attempt struct {
	token   string
	place   int // one more than that of the attempt before
	started time.Time
	ended   time.Time // when its bundle had; zero while it runs
	items   []*held
	// oldest is the earliest event time of items that holds the watermark, zero for none.
	oldest time.Time
	// firstSignal is when the first finalization of this attempt, or of one
	// that builds on it, had arrived; zero before.
	firstSignal uint64
	// fenced is set when the attempt has lost the reader. It may be read
	// without the lock.
	fenced atomic.Bool
}

// claim opens an attempt for a restriction that resumes token, whose parent is
// given too. It returns what it abandons, all that the ledger holds and that the
// restriction does not build on, and what it commits, where the claim itself
// proves that its past has committed.
//
// If token is known, what came after it is abandoned. If only parent is, the
// attempt that made token ran elsewhere, and what came after parent here is void.
// If neither is, it is everything: either they were committed and let go, so all
// that is left came after them, or the reader is claimed from a past that it
// never had.
func (l *ledger) claim(token, parent, newToken string, now time.Time) (a *attempt, committed, abandoned []*held) {
	past := l.find(token)
	if past < 0 {
		past = l.find(parent)
	}
	abandoned = l.abandonFrom(past + 1)
	if l.rule == run.FinalizedOrResumed {
		// The restriction is a residual of the last of them, or builds on one, so
		// they have committed. It may be claimed again, by a retry: then it knows
		// none of what is left, and all that was claimed since is abandoned.
		committed = l.commit(past + 1)
	}
	if l.owed == 0 {
		l.attempts, l.signaled = nil, 0 // Nothing hangs on the empty ones.
		clear(l.byToken)
	}
	a = &attempt{token: newToken, started: now}
	if n := len(l.attempts); n > 0 {
		a.place = l.attempts[n-1].place + 1
	}
	l.attempts = append(l.attempts, a)
	if l.byToken == nil {
		l.byToken = make(map[string]*attempt)
	}
	l.byToken[newToken] = a
	return a, committed, abandoned
}

// stage adds items to an attempt that is not fenced; the earliest of them that holds
// the watermark has that event time.
func (l *ledger) stage(a *attempt, items []*held, oldest time.Time) {
	for _, h := range items {
		h.state = staged
	}
	a.oldest = earlier(a.oldest, oldest)
	a.items = append(a.items, items...)
	l.owed += len(items)
}

// fail abandons the attempt of a bundle that has failed, and what was claimed
// after it.
func (l *ledger) fail(a *attempt) []*held {
	if i := l.find(a.token); i >= 0 {
		return l.abandonFrom(i)
	}
	return nil
}

// signal takes in the finalization of the bundle of the attempt with that token
// and returns what it commits. A signal counts for every attempt before its own
// too: they are in the list, so this one builds on them, and a runner that has
// made it durable has made them durable. A token that is not in the list was
// committed, abandoned or fenced, and proves nothing.
func (l *ledger) signal(token string, s finalize.Signal) []*held {
	last := l.find(token)
	if last < 0 {
		return nil
	}
	// attempts[:n] are committed: an attempt never is before an earlier one.
	n := 0
	switch l.rule {
	case run.Finalized, run.FinalizedOrResumed:
		n = last + 1
	case run.TwoRounds:
		n = sort.Search(min(l.signaled, last+1), func(i int) bool { return s.Finished <= l.attempts[i].firstSignal })
	case run.Pipeline:
	}
	for ; l.signaled <= last; l.signaled++ {
		l.attempts[l.signaled].firstSignal = s.Arrived
	}
	return l.commit(n)
}

// commitAll commits everything, for a pipeline that has succeeded as a whole.
func (l *ledger) commitAll() []*held { return l.commit(len(l.attempts)) }

// abandonAll abandons everything.
func (l *ledger) abandonAll() []*held { return l.abandonFrom(0) }

// uncommitted returns the earliest event time of what was emitted since the
// given time and is not known to be finalized; zero where there is none.
func (l *ledger) uncommitted(since time.Time) time.Time {
	var oldest time.Time
	for _, a := range l.attempts[l.signaled:] {
		if !a.started.Before(since) && !a.oldest.IsZero() && (oldest.IsZero() || a.oldest.Before(oldest)) {
			oldest = a.oldest
		}
	}
	return oldest
}

// waitingSince returns when the first bundle had ended whose messages still wait
// to be committed, zero where there is none.
func (l *ledger) waitingSince() time.Time {
	for _, a := range l.attempts {
		if len(a.items) > 0 && !a.ended.IsZero() {
			return a.ended
		}
	}
	return time.Time{}
}

func (l *ledger) find(token string) int {
	a, ok := l.byToken[token]
	if !ok {
		return -1
	}
	return a.place - l.attempts[0].place
}

// commit takes the first n attempts out of the list.
func (l *ledger) commit(n int) []*held {
	for _, a := range l.attempts[:n] {
		if l.onCommit != nil && len(a.items) > 0 {
			l.onCommit(a)
		}
	}
	items := l.collect(l.attempts[:n])
	l.attempts = slices.Delete(l.attempts, 0, n)
	l.signaled = max(l.signaled-n, 0)
	return items
}

// abandonFrom fences the attempts from the i-th on and takes them out.
func (l *ledger) abandonFrom(i int) []*held {
	void := l.attempts[i:]
	for _, a := range void {
		a.fenced.Store(true)
	}
	items := l.collect(void)
	l.attempts = slices.Delete(l.attempts, i, len(l.attempts))
	l.signaled = min(l.signaled, i)
	return items
}

// collect takes the messages out of attempts.
func (l *ledger) collect(as []*attempt) []*held {
	var items []*held
	for _, a := range as {
		if items == nil {
			items = a.items
		} else {
			items = append(items, a.items...)
		}
		a.items = nil // An attempt may live on in a callback.
		delete(l.byToken, a.token)
	}
	l.owed -= len(items)
	return items
}
