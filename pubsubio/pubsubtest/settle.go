package pubsubtest

import "time"

// acknowledge settles the messages of ids for good. An id of a message that is
// already acknowledged does nothing.
func (q *subscription) acknowledge(ids []ackID) {
	q.mu.Lock()
	now := time.Now()
	for _, id := range ids {
		e := q.entries.get(id.seq)
		if e == nil || e.attempt == 0 || e.place != nil && e.place.acked {
			continue
		}
		stale := id.attempt != e.attempt || !e.leased()
		if stale {
			q.stats.StaleAcks++
			if q.server.cfg.IgnoreStaleAcks {
				continue
			}
		}
		d := delivery{msg: e.msg, seq: e.seq, attempt: id.attempt}
		switch {
		case e.leased():
			q.releaseLocked(e)
		case e.list != nil:
			e.list.remove(e)
		}
		q.countAcknowledgedLocked(e)
		q.letGoLocked(e)
		q.server.events.acknowledged(now, q, d, stale)
	}
	q.wakeLocked()
	q.mu.Unlock()
	q.server.changes.notify()
}

// countAcknowledgedLocked counts each message once, also one that is delivered
// again after it was acknowledged.
func (q *subscription) countAcknowledgedLocked(e *entry) {
	if e.place != nil {
		if e.place.counted {
			return
		}
		e.place.counted = true
	}
	q.stats.Acknowledged++
	q.retainLocked(e.msg)
}

// retainLocked keeps a message that is acknowledged for a seek.
func (q *subscription) retainLocked(m *stored) {
	if q.settings.Load().retainAcked {
		q.retained = append(q.retained, m)
	}
}

// extend lets the leases of ids end so many lease seconds from now; zero returns
// the messages at once. An id of an earlier delivery, or whose lease has ended,
// does nothing.
func (q *subscription) extend(ids []ackID, seconds int32) {
	dead := q.deadLetters()
	var letters []delivery
	q.mu.Lock()
	now := time.Now()
	bucket := (*entryList)(nil)
	for _, id := range ids {
		e := q.entries.get(id.seq)
		if e == nil || id.attempt != e.attempt || !e.leased() {
			continue
		}
		d := delivery{msg: e.msg, seq: e.seq, attempt: id.attempt}
		if seconds > 0 {
			if bucket == nil {
				bucket = q.leases.bucket(seconds)
			}
			e.list.remove(e)
			bucket.push(e)
			q.stats.Extensions++
			q.server.events.settled(now, Extend, q, d, seconds)
			continue
		}
		q.releaseLocked(e)
		q.stats.Returned++
		q.server.events.settled(now, Return, q, d, 0)
		if letter, isDead := q.againLocked(e, dead); isDead {
			letters = append(letters, letter)
		}
	}
	q.wakeLocked()
	q.setAlarmLocked()
	q.mu.Unlock()
	q.server.changes.notify()
	q.forward(letters, dead)
}

// leased reports whether the entry is delivered and its lease runs.
func (e *entry) leased() bool { return e.list != nil && e.list.lease }
