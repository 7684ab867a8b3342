package source

import (
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

const (
	// leaseMargin is what is left of a lease when it is extended, at most: time for
	// several tries before it lapses. Of a short lease it is half.
	leaseMargin = 30 * time.Second
	// leaseGrain is how far apart two responses may arrive that share a lease,
	// which keeps the number of leases small beside that of messages.
	leaseGrain = time.Second
	// leaseSize is how many messages share a lease at most. A lease knows all
	// that were ever under it while any of them still is, and at full rate a
	// moment brings hundreds of thousands.
	leaseSize = 1024
)

// A lease covers the messages of one stream that were received within a moment
// of each other.
type lease struct {
	received time.Time     // of the first of them
	granted  time.Duration // for how long, by the stream or the last extension
	until    time.Time     // when the service may deliver them again
	items    []*held       // among them some that have moved to a newer lease
	live     int           // items that are held and under this lease
	lapsed   bool          // its end was noted
	sealed   bool          // its messages are being extended, and no other joins them
}

// leases keeps the leases of a reader's messages, in the order of receipt. The
// reader's mutex guards it.
type leases struct {
	maxExtension time.Duration // after receipt; 0 or less: never extended
	shortest     time.Duration // of one extension
	longest      time.Duration
	holds        holdTimes
	list         []*lease
}

func newLeases(o options.Subscriber) leases {
	ls := leases{maxExtension: o.MaxExtension, shortest: o.MinExtensionPeriod, longest: o.MaxExtensionPeriod}
	if o.MaxExtension > 0 { // No lease is to be longer than it may be extended to.
		ls.longest = min(ls.longest, max(o.MaxExtension, ls.shortest))
	}
	return ls
}

// period is the lease that a stream asks for and that a first extension grants: it
// lets all but the slowest in a hundred messages be acknowledged before they are
// due to be extended, and gives back soon what a killed worker held.
func (ls *leases) period() time.Duration { return ls.clamp(2 * ls.holds.slowest()) }

// extension is how long the messages of a lease are extended by now. What has been
// held for long is likely to be held as long again, so that a message is extended
// a few times and not over and over, however long its bundle takes.
func (ls *leases) extension(l *lease, now time.Time) time.Duration {
	age := now.Sub(l.received)
	return ls.clamp(min(max(ls.period(), age), ls.maxExtension-age))
}

// clamp returns d in whole seconds, as the service takes them, and within bounds.
func (ls *leases) clamp(d time.Duration) time.Duration {
	if part := d % time.Second; part > 0 {
		d += time.Second - part
	}
	return min(max(d, ls.shortest), ls.longest)
}

// margin is how long before its end a lease of that period is extended.
func margin(period time.Duration) time.Duration { return min(period/2, leaseMargin) }

// grant notes that the service has given the messages of l that long, from then.
func (l *lease) grant(d time.Duration, from time.Time) { l.granted, l.until = d, from.Add(d) }

// A grant is the lease that the service gives to what it sends.
type grant struct {
	period time.Duration
	// waited is set where part of it may be over, see transit.
	waited bool
}

// until returns when a lease that is granted now is to be taken as over. One in doubt
// is due to be extended at once, and not taken as over: the service would say so, by
// sending its messages again.
func (g grant) until(now time.Time) time.Time {
	if g.waited {
		return now.Add(margin(g.period))
	}
	return now.Add(g.period)
}

// add puts h, just received, under a lease, and takes it out of the one it may have
// been under.
func (ls *leases) add(h *held, g grant, now time.Time) {
	l := ls.newest(g, now)
	if h.lease == l {
		return // It came twice within a moment, and must not be in the lease twice.
	}
	ls.release(h)
	l.items = append(l.items, h)
	l.live++
	h.lease = l
}

// newest returns the lease that covers what is received now.
func (ls *leases) newest(g grant, now time.Time) *lease {
	until := g.until(now)
	if n := len(ls.list); n > 0 {
		l := ls.list[n-1]
		if now.Sub(l.received) < leaseGrain && len(l.items) < leaseSize && !l.sealed && !until.Before(l.until) && until.Sub(l.until) < leaseGrain {
			return l
		}
	}
	l := &lease{received: now, granted: g.period, until: until}
	ls.list = append(ls.list, l)
	return l
}

// release ends the lease of h.
func (ls *leases) release(h *held) {
	l := h.lease
	if l == nil {
		return
	}
	h.lease = nil
	if l.live--; l.live == 0 {
		l.items = nil // The lease itself stays in the list until it is looked at.
	}
}

// learn takes in how long messages were held that are acknowledged now.
func (ls *leases) learn(items []*held, now time.Time) {
	var last *lease
	n := 0
	for _, h := range items {
		if h.lease != last {
			ls.holds.add(last, n, now)
			last, n = h.lease, 0
		}
		n++
	}
	ls.holds.add(last, n, now)
}

// due returns the leases to be extended now. Those with nothing left under them
// are forgotten on the way.
func (ls *leases) due(now time.Time) []*lease {
	var due []*lease
	kept := ls.list[:0]
	for _, l := range ls.list {
		if l.live == 0 {
			continue
		}
		kept = append(kept, l)
		if l.until.Sub(now) > margin(l.granted) || now.Sub(l.received) >= ls.maxExtension || !now.Before(l.until) {
			continue
		}
		due = append(due, l)
	}
	clear(ls.list[len(kept):])
	ls.list = kept
	return due
}

// lapsed returns what is still in the buffer and whose lease has ended, and how
// many messages with a lease that has ended since the last call were emitted.
func (ls *leases) lapsed(now time.Time) (waiting []*held, emitted int) {
	for _, l := range ls.list {
		if now.Before(l.until) {
			l.lapsed = false // It may have been extended again.
			continue
		}
		for _, h := range l.items {
			switch {
			case h.lease != l:
			case h.state == buffered:
				waiting = append(waiting, h)
			case !l.lapsed && (h.state == staged || h.state == committed):
				emitted++
			}
		}
		l.lapsed = true
	}
	return waiting, emitted
}

// emitted returns how many messages under l were emitted.
func (l *lease) emitted() int {
	n := 0
	for _, h := range l.items {
		if h.lease == l && (h.state == staged || h.state == committed) {
			n++
		}
	}
	return n
}

// ackIDs returns the ids to extend l by, and lets go of what has left it. Nothing joins
// it from then on: it would be taken for extended with the others.
func (l *lease) ackIDs() []string {
	l.sealed = true
	ids := make([]string, 0, l.live)
	kept := l.items[:0]
	for _, h := range l.items {
		if h.lease == l {
			kept = append(kept, h)
			ids = append(ids, h.ackID)
		}
	}
	clear(l.items[len(kept):])
	l.items = kept
	return ids
}

// lapsed reports whether the service may have delivered h again.
func (h *held) lapsed(now time.Time) bool { return h.lease == nil || !now.Before(h.lease.until) }
