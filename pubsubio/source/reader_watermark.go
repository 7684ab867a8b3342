package source

import "time"

// tell hears what an attempt reports as the restriction's watermark, or, as it begins,
// what was reported in the past that it builds on. That may be less than was reported
// since, in vain: what was late by it in the buffer is not, then.
func (r *reader) tell(a *attempt, t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.fenced.Load() {
		return
	}
	back := t.Before(r.told)
	r.told = t
	if back {
		r.fifo.judge(r.holdLocked)
	}
}

// toldLocked returns the watermark that was reported. Nothing can be done any more for a
// message that lies behind it, so such a one holds nothing: one of last year would hold
// up every window, for as long as others like it come.
func (r *reader) toldLocked() time.Time {
	if r.group.binding.Prism {
		return r.group.toldTime()
	}
	return r.told
}

func (r *reader) toldNow() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.toldLocked()
}

// holdLocked returns the earliest event time among items that holds the watermark,
// zero where none does.
func (r *reader) holdLocked(items []*held) time.Time {
	told := r.toldLocked()
	var oldest time.Time
	for _, h := range items {
		if !h.eventTime.Before(told) {
			oldest = earlier(oldest, h.eventTime)
		}
	}
	return oldest
}

// watermark returns the time before which this reader expects to emit nothing
// more, the zero time while it knows nothing.
func (r *reader) watermark(now time.Time) time.Time {
	since := now.Add(-r.config.WatermarkHoldLimit)
	r.mu.Lock()
	defer r.mu.Unlock()
	awaited := r.awaiting.oldest(now)
	estimate := r.wm.estimate(now, awaited.IsZero() && r.drainableLocked())
	if estimate.IsZero() {
		return estimate
	}
	hold := earlier(r.fifo.oldest(since), r.ledger.uncommitted(since))
	return earlier(estimate, earlier(hold, awaited))
}
