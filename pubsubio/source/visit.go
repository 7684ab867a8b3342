package source

import (
	"context"
	"errors"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"
)

const (
	// maxChunk is how many messages are taken from the buffer at a time, at
	// most: one use of the reader's lock for each chunk.
	maxChunk = 256
	// chunkTime is how long a chunk should take at most to be emitted. The
	// bundle's limit in time is looked at between chunks, so they begin with a
	// single message and grow while they are quick.
	chunkTime = 5 * time.Millisecond
	// insideWait is how long a bundle with nothing to emit waits for something.
	// Waiting inside is quicker and cheaper than coming back: a message is
	// emitted as soon as it is there. Prism splits a bundle that waits for more
	// than 200 ms; Flink's checkpoint waits with it.
	insideWait = 100 * time.Millisecond
)

// A visit is one attempt's work on its reader: what ProcessElement does between
// claiming the reader and leaving it.
type visit struct {
	group   *group
	reader  *reader
	attempt *attempt
	budget  *budget
	quota   *quota // of the group or of the restriction; nil for no limit
	emit    *emitter
	refused *disposal
	// maxDelivery is that of the assignment.
	maxDelivery int
	emitted     int // messages, whatever they were decoded into
	size        int // of the next chunk
	chunk       []delivery
}

// enter claims the reader of a restriction in the group that groupOf returns.
//
//nolint:contextcheck // a reader outlives the bundle that opens it
func enter(groupOf func() (*group, error), a assignment, r restriction, token string) (*visit, error) {
	for {
		g, err := groupOf()
		if err != nil {
			return nil, err
		}
		reader, err := g.reader(a.ReaderNonce, a.Subscription)
		if errors.Is(err, errEnded) {
			continue // The group has gone meanwhile; the next is another one.
		}
		if err != nil {
			return nil, err
		}
		attempt, err := reader.claim(r.Token, r.Parent, token, r.Mode == reading)
		if errors.Is(err, errEnded) {
			g.remove(reader)
			continue
		}
		if err != nil {
			// The bundle's next try begins with a new reader.
			reader.abandon()
			return nil, err
		}
		v := &visit{group: g, reader: reader, attempt: attempt, quota: g.quota, size: 1, maxDelivery: a.MaxDelivery}
		if v.quota == nil && r.Left >= 0 {
			v.quota = &quota{max: r.Left}
		}
		return v, nil
	}
}

// drain emits what is buffered, within the bundle's budget and the limits.
func (v *visit) drain(ctx context.Context) error {
	records, bytes := v.budget.share(v.group, v.reader)
	began := time.Now()
	for records > 0 && bytes > 0 && began.Before(v.budget.until) {
		taken, size, err := v.drainChunk(ctx, min(records, v.size), bytes)
		v.budget.spend(taken, size)
		if err != nil {
			return err
		}
		if taken == 0 && !v.fill(ctx) {
			break
		}
		records -= taken
		bytes -= size
		now := time.Now()
		v.size = nextChunk(v.size, now.Sub(began))
		began = now
	}
	return nil
}

// nextChunk returns the size of the chunk after one of size n that took that
// long.
func nextChunk(n int, took time.Duration) int {
	switch {
	case took > chunkTime:
		return max(n/2, 1)
	case took < chunkTime/2:
		return min(2*n, maxChunk)
	}
	return n
}

func (v *visit) drainChunk(ctx context.Context, n int, bytes int64) (taken int, size int64, err error) {
	if n = v.quota.reserve(n); n == 0 {
		return 0, 0, nil
	}
	v.chunk, err = v.reader.take(v.attempt, v.chunk[:0], n, bytes) //nolint:contextcheck // a reader's streams outlive the bundle
	v.quota.settle(n, len(v.chunk))
	if err != nil {
		return 0, 0, err
	}
	if v.emit.timed {
		v.emit.told = v.reader.toldNow()
	}
	for i := range v.chunk {
		d := &v.chunk[i]
		if v.attempt.fenced.Load() {
			return i, size, errFenced
		}
		if err := v.emitOne(ctx, d); err != nil {
			return i, size, err
		}
		size += d.size
		d.msg = nil
	}
	v.emitted += len(v.chunk)
	decoded := len(v.chunk) - v.refused.takeCount()
	v.group.counts.Emitted.Add(int64(decoded))
	countEmitted(ctx, decoded)
	v.reader.emittedAt(v.attempt, v.emit.takeOldest())
	return len(v.chunk), size, nil
}

// emitOne emits what a message is decoded into, and disposes of one that is refused.
func (v *visit) emitOne(ctx context.Context, d *delivery) error {
	v.overdue(d)
	err := v.checkTime(d)
	if err == nil {
		was := *d.msg // The decoder may change the one that it gets, or keep it.
		if err = v.emit.run(d.msg, mtime.FromTime(d.eventTime)); err != nil {
			again := was
			d.msg = &again
		}
	}
	if err != nil {
		return v.refused.take(ctx, v, d, err)
	}
	return nil
}

// ended reports whether the restriction is to read nothing more.
func (v *visit) ended(r restriction) bool {
	return r.Mode == settling || v.quota.used() || v.group.finished(time.Now(), r.deadline())
}

// await returns once ready reports true, or after limit, or when the bundle is void
// or stop is closed.
func (v *visit) await(ctx context.Context, limit time.Duration, stop <-chan struct{}, ready func() bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		changed := v.group.changed.changed()
		if ready() || v.reader.check(v.attempt) != nil {
			return
		}
		select {
		case <-changed:
		case <-stop:
			return
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// awaitMessages waits a moment for any reader of the Read to have something.
func (v *visit) awaitMessages(ctx context.Context) {
	v.await(ctx, insideWait, v.group.run.Stopping(), func() bool { return v.group.ready(nil) > 0 })
}

// awaitSettled waits a moment for nothing to be owed. A run that is stopping is
// what it works for, and no reason to hurry.
func (v *visit) awaitSettled(ctx context.Context) {
	v.await(ctx, insideWait, nil, func() bool { return v.reader.owed() == 0 })
}
