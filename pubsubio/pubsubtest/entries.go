package pubsubtest

import (
	"cmp"
	"slices"
)

// An entry is one message of one subscription, from its publish to its
// acknowledgement.
//
// It is in at most one list: that of a lease's bucket, or that of the returned.
// One that was never delivered is in none, its number says when its turn comes;
// nor is one with an ordering key that waits, see lines. One that is
// acknowledged has no message.
type entry struct {
	msg        *stored
	prev, next *entry
	list       *entryList
	holder     *consumer // who got it last, while the lease lasts
	place      *place    // in the line of its ordering key, nil if there is none
	seq        uint64
	attempt    uint32
}

// entryList is a list through the entries themselves: adding and removing any
// entry is constant work without an allocation.
type entryList struct {
	head, tail *entry
	n          int
	lease      bool // its entries are leased, else they wait
}

func (l *entryList) push(e *entry) {
	e.list, e.prev, e.next = l, l.tail, nil
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.next = e
	}
	l.tail = e
	l.n++
}

func (l *entryList) remove(e *entry) {
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.list, e.prev, e.next = nil, nil, nil
	l.n--
}

// sort brings the entries into the order of their publishing.
func (l *entryList) sort() {
	var entries []*entry
	for e := l.head; e != nil; e = e.next {
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(a, b *entry) int { return cmp.Compare(a.msg.id, b.msg.id) })
	for _, e := range entries {
		l.remove(e)
		l.push(e)
	}
}

// chunkSize is how many entries are allocated, and let go, at once.
const chunkSize = 512

type chunk struct {
	entries [chunkSize]entry
	live    int // not acknowledged
}

// entryTable holds the entries of a subscription by their sequence number, from
// the first that is not acknowledged on. Finding one is constant work.
type entryTable struct {
	chunks []*chunk // nil where all are acknowledged
	base   uint64   // the number of the first chunk
	end    uint64   // the sequence number of the next entry
}

func (t *entryTable) add(msg *stored) *entry {
	i := t.end/chunkSize - t.base
	if i == uint64(len(t.chunks)) {
		t.chunks = append(t.chunks, new(chunk))
	}
	c := t.chunks[i]
	e := &c.entries[t.end%chunkSize]
	e.msg, e.seq = msg, t.end
	c.live++
	t.end++
	return e
}

// get returns the entry of a sequence number, nil if it is acknowledged or was
// never given.
func (t *entryTable) get(seq uint64) *entry {
	if seq >= t.end || seq/chunkSize < t.base {
		return nil
	}
	c := t.chunks[seq/chunkSize-t.base]
	if c == nil {
		return nil
	}
	if e := &c.entries[seq%chunkSize]; e.msg != nil {
		return e
	}
	return nil
}

// drop lets go of an entry that is in no list.
func (t *entryTable) drop(e *entry) {
	i := e.seq/chunkSize - t.base
	c := t.chunks[i]
	*e = entry{}
	c.live--
	if c.live > 0 || (i+t.base+1)*chunkSize > t.end {
		return // still used, or still to be filled
	}
	t.chunks[i] = nil
	for len(t.chunks) > 0 && t.chunks[0] == nil {
		t.chunks = t.chunks[1:]
		t.base++
	}
}

// each calls f with the entries that are not acknowledged, in the order of their
// numbers. f may drop the one that it gets.
func (t *entryTable) each(f func(*entry)) {
	for _, c := range slices.Clone(t.chunks) {
		for i := 0; c != nil && i < chunkSize; i++ {
			if e := &c.entries[i]; e.msg != nil {
				f(e)
			}
		}
	}
}

// live returns how many entries are not acknowledged. It is for tests.
func (t *entryTable) live() (n int) {
	for _, c := range t.chunks {
		if c != nil {
			n += c.live
		}
	}
	return n
}
