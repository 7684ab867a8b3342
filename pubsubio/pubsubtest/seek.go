package pubsubtest

import (
	"cmp"
	"math"
	"slices"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errDetached is the answer to a pull from a detached subscription.
var errDetached = status.Error(codes.FailedPrecondition, "The subscription is detached from its topic.")

// seek makes what was published before the given time acknowledged, and what was
// published since and is still retained unacknowledged: by the subscription, if
// it retains acknowledged messages, or by the topic, if it has a retention. What
// is leased and was published since then stays leased.
func (q *subscription) seek(to time.Time) {
	since := nanoseconds(to)
	var retained []*stored
	if t, err := q.server.resources.topic(q.proto().GetTopic()); err == nil {
		retained = t.retainedSince(since)
	}
	q.mu.Lock()
	q.purgeLocked(since)
	q.restoreLocked(since, retained)
	q.server.events.add(record{at: time.Now(), kind: Seek, sub: q.name})
	q.wakeLocked()
	q.setAlarmLocked()
	q.mu.Unlock()
	q.server.changes.notify()
}

// nanoseconds is the Unix time of t, cut to what 64 bits hold: a seek to the far
// past or future is one to all or to nothing.
func nanoseconds(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// purgeLocked lets go of what was published before.
func (q *subscription) purgeLocked(before int64) {
	q.listUnsentLocked()
	q.entries.each(func(e *entry) {
		if e.msg.published >= before {
			return
		}
		if e.place == nil || !e.place.counted {
			q.stats.Purged++
			q.retainLocked(e.msg)
		}
		q.eraseLocked(e)
	})
	if q.lines != nil {
		q.lines.trimAll(q.entries.drop)
	}
}

// eraseLocked forgets an entry wherever it is, but for the never delivered.
func (q *subscription) eraseLocked(e *entry) {
	if e.leased() {
		q.releaseLocked(e)
	} else if e.list != nil {
		e.list.remove(e)
	}
	if e.place != nil {
		q.lines.unlink(e)
	}
	q.entries.drop(e)
}

// listUnsentLocked moves what was never delivered to those that are returned, so
// that entries with later numbers may come before it.
func (q *subscription) listUnsentLocked() {
	for ; q.unsent < q.entries.end; q.unsent++ {
		q.returned.push(q.entries.get(q.unsent))
	}
}

// restoreLocked brings back what was published since then and is retained by the
// subscription or among others, in the order of publishing.
func (q *subscription) restoreLocked(since int64, others []*stored) {
	live := make(map[uint64]*entry)
	q.entries.each(func(e *entry) { live[e.msg.id] = e })
	for _, m := range q.takeRetainedLocked(since, others) {
		if e := live[m.id]; e != nil {
			q.unacknowledgeLocked(e)
			continue
		}
		e := q.entries.add(m)
		live[m.id] = e
		q.unsent = q.entries.end
		q.stats.Restored++
		if q.lines == nil || !q.lines.restore(e, q.recallLocked) {
			q.returned.push(e)
		}
	}
	q.returned.sort()
}

// takeRetainedLocked returns what was published since then and is retained, by
// the subscription, which lets go of it, or among others; sorted.
func (q *subscription) takeRetainedLocked(since int64, others []*stored) (back []*stored) {
	oldest := time.Now().Add(-q.proto().GetMessageRetentionDuration().AsDuration()).UnixNano()
	q.retained = slices.DeleteFunc(q.retained, func(m *stored) bool {
		if m.published >= oldest && m.published >= since {
			back = append(back, m)
		}
		return m.published < oldest || m.published >= since
	})
	for _, m := range others {
		if q.filter == nil || q.filter.Matches(m.attributes()) {
			back = append(back, m)
		}
	}
	slices.SortFunc(back, func(a, b *stored) int { return cmp.Compare(a.id, b.id) })
	return back
}

// unacknowledgeLocked makes an entry that was acknowledged, and stays for an
// earlier one of its key, wait again.
func (q *subscription) unacknowledgeLocked(e *entry) {
	if e.place == nil {
		return
	}
	if e.place.acked {
		q.stats.Restored++
		q.lines.rewind(e, q.recallLocked)
	}
	e.place.counted = false
}

// detach ends the delivery of messages for good.
func (q *subscription) detach() {
	_, _ = q.update(func(config *pubsubpb.Subscription) error {
		config.Detached, config.RetainAckedMessages = true, false
		return nil
	})
	q.mu.Lock()
	q.listUnsentLocked()
	q.entries.each(q.eraseLocked)
	q.mu.Unlock()
	q.endStreams(errDetached)
	q.server.changes.notify()
}
