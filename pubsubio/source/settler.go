package source

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

const (
	// maxSettleBytes keeps a request of ack ids under the service's 512 KiB.
	// Ids have no documented length and have grown before, so a request is
	// sized by bytes and not by count.
	maxSettleBytes = 512<<10 - 4<<10
	// maxSettleIDs is how many ids are looked at for one request, at most: of those of
	// the service, which have 200 bytes, twice as many as fit.
	maxSettleIDs = 5_000
	// settleAttempt is how long one attempt at a request may take.
	settleAttempt = 15 * time.Second
)

// A settler tells the service what becomes of messages, in requests as large as
// they may be, in the order in which they were added: acknowledgements, or
// returns. T is what names a message until the request is made.
type settler[T any] struct {
	ids  func([]T) []string // the messages' ack ids by now
	send func(ctx context.Context, ids []string) error
	// budget is how long one request is tried; zero is for ever.
	budget time.Duration
	// refused hears of an answer that asking again may not change, and reports whether
	// to ask again all the same. Nil for never.
	refused func(items []T, err error) bool
	// done hears of each request's end, with nil or the last error, and returns
	// what has to be sent again.
	done func(items []T, ids []string, err error) []T
	// answered is signalled after each, once owed has become less.
	answered *broadcast

	wake chan struct{} // holds one token when there is work

	mu      sync.Mutex // guards all below
	queue   []T
	added   []addition // how queue came about
	pending int        // in the queue or in a request
	last    error      // of the last attempt that failed
}

// An addition is so many messages at the same time.
type addition struct {
	n  int
	at time.Time
}

// start makes a settler ready. run must follow.
func (s *settler[T]) start() *settler[T] {
	s.wake = make(chan struct{}, 1)
	return s
}

// add queues messages; it never blocks.
func (s *settler[T]) add(items []T) {
	if len(items) == 0 {
		return
	}
	s.mu.Lock()
	s.queue = append(s.queue, items...)
	s.added = append(s.added, addition{len(items), time.Now()})
	s.pending += len(items)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// owed returns how many messages have no answer yet.
func (s *settler[T]) owed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}

// waitingSince returns when the messages were added that have waited longest for
// their answer, zero where there are none.
func (s *settler[T]) waitingSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.added) == 0 {
		return time.Time{}
	}
	return s.added[0].at
}

// flush waits until every message has its answer, or for ctx.
func (s *settler[T]) flush(ctx context.Context) {
	for {
		changed := s.answered.changed()
		if s.owed() == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// run sends what is queued until ctx ends. The reader starts it and waits for it.
func (s *settler[T]) run(ctx context.Context) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		most := maxSettleIDs
		for items, ids := s.next(most); len(items) > 0 && ctx.Err() == nil; items, ids = s.next(most) {
			err := s.try(ctx, items, ids)
			if err != nil && len(items) > 1 && transport.Classify(ctx, err) == transport.Rejected {
				most = len(items) / 2 // Find the id that is refused; the others are good.
				continue
			}
			s.end(items, s.done(items, ids, err))
			most = min(2*most, maxSettleIDs)
		}
	}
}

// next returns a request's worth from the front of the queue, which keeps it
// until end, of that many at most.
func (s *settler[T]) next(most int) ([]T, []string) {
	s.mu.Lock()
	items := s.queue[:min(len(s.queue), most)]
	s.mu.Unlock()
	ids := s.ids(items)
	n := fitting(ids)
	return items[:n], ids[:n]
}

// end takes items out of the queue, and puts those back that are sent again.
func (s *settler[T]) end(items, again []T) {
	s.mu.Lock()
	s.queue = s.queue[len(items):]
	if len(again) > 0 {
		s.queue = slices.Concat(again, s.queue)
	}
	answered := len(items) - len(again)
	s.pending -= answered
	for ; answered > 0; s.added = s.added[1:] {
		first := &s.added[0]
		if first.n > answered {
			first.n -= answered
			break
		}
		answered -= first.n
	}
	if s.pending == 0 {
		s.queue, s.added = nil, nil
	}
	s.mu.Unlock()
	s.answered.signal()
}

// fitting returns how many of ids fit into one request.
func fitting(ids []string) int {
	bytes := 0
	for i, id := range ids {
		bytes += len(id) + 4 // tag and length
		if bytes > maxSettleBytes && i > 0 {
			return i
		}
	}
	return len(ids)
}

// try sends ids until the service has answered for good, or the budget is spent.
// A subscription that is missing may only be so new that not every server knows
// it.
func (s *settler[T]) try(ctx context.Context, items []T, ids []string) error {
	if s.budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.budget)
		defer cancel()
	}
	backoff := gax.Backoff{Initial: 100 * time.Millisecond, Max: 5 * time.Second, Multiplier: 2}
	var missing time.Time
	for {
		err := s.attempt(ctx, ids)
		if err == nil {
			return nil
		}
		switch transport.Classify(ctx, err) {
		case transport.Retryable:
			missing = time.Time{}
		case transport.Missing:
			if missing.IsZero() {
				missing = time.Now()
			}
			if time.Since(missing) >= missingGrace {
				return err
			}
		case transport.Permanent:
			if s.refused == nil || !s.refused(items, err) {
				return err
			}
		default:
			return err
		}
		if gax.Sleep(ctx, backoff.Pause()) != nil {
			return err
		}
	}
}

func (s *settler[T]) attempt(ctx context.Context, ids []string) error {
	within, cancel := context.WithTimeout(ctx, settleAttempt)
	defer cancel()
	err := s.send(within, ids)
	if err != nil && ctx.Err() == nil { // One that was cut off says nothing.
		s.mu.Lock()
		s.last = err
		s.mu.Unlock()
	}
	return err
}

// lastError returns the error of the last attempt that failed.
func (s *settler[T]) lastError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
