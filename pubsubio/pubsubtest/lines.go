package pubsubtest

import (
	"container/list"
	"maps"
	"slices"
)

// lines are the messages of a subscription with message ordering, a line for
// each ordering key. The subscription's lock guards them.
//
// What is outstanding of a key went to one owner, and what follows goes to the
// same until it is all settled: two clients could not tell whose is first. When
// a message comes back, all later ones of its key come with it, acknowledged or
// not, and are delivered again in their order.
type lines struct {
	byKey   map[string]*line
	free    pool      // of lines that any consumer may take from
	unkeyed entryList // never delivered, without a key and so without an order
	owners  map[string]*owner
	waiting int // messages of all lines

	hold    bool    // set once: Config.HoldKeys
	sending []*line // of the batch that is being made, where keys are held
}

// A pool is lines with messages to deliver, the one whose turn it is first.
type pool struct {
	lines   list.List // of *line
	waiting int       // messages
}

// An owner is a consumer, or all with one client id: a stream that is opened
// again goes on with the keys that it had.
type owner struct {
	pool      // of its lines
	clientID  string
	consumers int
	held      int // lines
}

func newLines(hold bool) *lines {
	return &lines{byKey: make(map[string]*line), owners: make(map[string]*owner), hold: hold}
}

// join gives a consumer its owner.
func (ls *lines) join(c *consumer) {
	o := ls.owners[c.clientID]
	if o == nil {
		o = &owner{clientID: c.clientID}
		if c.clientID != "" {
			ls.owners[c.clientID] = o
		}
	}
	o.consumers++
	c.owner = o
}

func (ls *lines) leave(c *consumer) {
	c.owner.consumers--
	ls.forget(c.owner)
}

// forget lets go of an owner that nothing needs any more.
func (ls *lines) forget(o *owner) {
	if o.consumers == 0 && o.held == 0 {
		delete(ls.owners, o.clientID)
	}
}

// freeWaiting returns how many messages any consumer may take.
func (ls *lines) freeWaiting() int { return ls.unkeyed.n + ls.free.waiting }

// add puts a new entry where it waits.
func (ls *lines) add(e *entry) {
	key := orderingKey(e.msg.wire)
	if key == "" {
		ls.unkeyed.push(e)
		return
	}
	l := ls.byKey[key]
	if l == nil {
		l = &line{key: key}
		ls.byKey[key] = l
	}
	ls.change(l, func() {
		l.insert(e, l.last)
		if l.next == nil {
			l.next = e
		}
		l.waiting++
	})
}

// restore puts an entry where its message was published, and makes it wait with
// all that come after it. It reports false for one without a key.
func (ls *lines) restore(e *entry, recall func(*entry)) bool {
	key := orderingKey(e.msg.wire)
	if key == "" {
		return false
	}
	l := ls.byKey[key]
	if l == nil || l.last.msg.id < e.msg.id {
		ls.add(e)
		return true
	}
	behind := l.last
	for behind != nil && behind.msg.id > e.msg.id {
		behind = behind.place.before
	}
	waits := behind != nil && l.waits(behind)
	ls.change(l, func() {
		l.insert(e, behind)
		if waits {
			l.waiting++
		}
	})
	if !waits {
		ls.rewind(e, recall)
	}
	return true
}

// trimAll lets go of what is acknowledged at the head of each line.
func (ls *lines) trimAll(letGo func(*entry)) {
	for _, l := range slices.Collect(maps.Values(ls.byKey)) {
		ls.trim(l, letGo)
	}
}

// change lets f change a line, and then puts it where it belongs: at the end of
// its owner's or of the free lines if something waits in it that may be sent, else
// nowhere.
func (ls *lines) change(l *line, f func()) {
	if l.pool != nil {
		l.pool.lines.Remove(l.element)
		l.pool.waiting -= l.waiting
		l.pool, l.element = nil, nil
	}
	ls.waiting -= l.waiting
	f()
	ls.waiting += l.waiting
	if l.outstanding == 0 && l.owner != nil {
		l.owner.held--
		ls.forget(l.owner)
		l.owner = nil
	}
	if l.first == nil {
		delete(ls.byKey, l.key)
	}
	if l.waiting == 0 || ls.hold && l.outstanding > 0 && !l.sending {
		return
	}
	l.pool = &ls.free
	if l.owner != nil {
		l.pool = &l.owner.pool
	}
	l.element = l.pool.lines.PushBack(l)
	l.pool.waiting += l.waiting
}

// firstFor returns the message that is c's to take next, the earliest of those
// whose turn it is; nil if there is none.
func (ls *lines) firstFor(c *consumer) *entry {
	first := ls.unkeyed.head
	for _, p := range []*pool{&c.owner.pool, &ls.free} {
		front := p.lines.Front()
		if front == nil {
			continue
		}
		l, _ := front.Value.(*line)
		if first == nil || l.next.msg.id < first.msg.id {
			first = l.next
		}
	}
	return first
}

// deliver takes the first waiting entry of its line for c.
func (ls *lines) deliver(e *entry, c *consumer) {
	l := e.place.line
	if ls.hold && !l.sending {
		l.sending = true
		ls.sending = append(ls.sending, l)
	}
	ls.change(l, func() {
		l.next = e.place.next
		l.waiting--
		l.outstanding++
		if l.owner == nil {
			l.owner = c.owner
			l.owner.held++
		}
	})
}

// endBatch ends a batch: where keys are held, no more of its keys is sent until it is
// settled.
func (ls *lines) endBatch() {
	for _, l := range ls.sending {
		l.sending = false
		ls.change(l, func() {})
	}
	ls.sending = ls.sending[:0]
}

// release is for an entry whose lease has ended: its owner has one less.
func (ls *lines) release(e *entry) {
	l := e.place.line
	ls.change(l, func() { l.outstanding-- })
}

// settle is for an entry that is acknowledged and not leased. It stays if one
// before it is not acknowledged; else letGo is called for it, and for those that
// stayed for it.
func (ls *lines) settle(e *entry, letGo func(*entry)) {
	l := e.place.line
	if e != l.first && !l.waits(e) {
		e.place.acked = true
		return
	}
	ls.remove(e, letGo)
}

// remove is settle for an entry that is not to stay.
func (ls *lines) remove(e *entry, letGo func(*entry)) {
	l := e.place.line
	ls.unlink(e)
	letGo(e)
	ls.trim(l, letGo)
}

// trim lets go of what is acknowledged at the head of a line.
func (ls *lines) trim(l *line, letGo func(*entry)) {
	for l.first != nil && l.first.place.acked {
		e := l.first
		ls.unlink(e)
		letGo(e)
	}
}

// unlink takes an entry that is not leased out of its line.
func (ls *lines) unlink(e *entry) {
	p, l := e.place, e.place.line
	ls.change(l, func() {
		if l.waits(e) {
			l.waiting--
			if l.next == e {
				l.next = p.next
			}
		}
		if p.before == nil {
			l.first = p.next
		} else {
			p.before.place.next = p.next
		}
		if p.next == nil {
			l.last = p.before
		} else {
			p.next.place.before = p.before
		}
	})
}

// rewind makes e, which is not leased, wait again, and with it all that come
// after it. recall is called for those that are leased, and ends their leases.
func (ls *lines) rewind(e *entry, recall func(*entry)) {
	l := e.place.line
	for x := e.place.next; x != nil && x != l.next; x = x.place.next {
		if x.leased() {
			recall(x)
		}
	}
	ls.change(l, func() {
		for x := e; x != nil && x != l.next; x = x.place.next {
			x.place.acked = false
			l.waiting++
		}
		l.next = e
	})
}
