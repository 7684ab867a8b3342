package pubsubtest

import (
	"container/list"

	"google.golang.org/protobuf/encoding/protowire"
)

// A line is the messages of one key that are not let go, in their order: first
// those that are delivered, then those that wait.
type line struct {
	key         string
	first, last *entry
	next        *entry // the first that waits
	waiting     int
	outstanding int
	sending     bool   // in the batch that is being made
	owner       *owner // while there is something outstanding
	pool        *pool  // while something waits that may be sent
	element     *list.Element
}

// A place is an entry's place in its line.
type place struct {
	line         *line
	before, next *entry
	// acked is an entry that is acknowledged while an earlier one is not. It
	// stays: should the earlier one come back, it does, too.
	acked   bool
	counted bool // as acknowledged, once
}

// orderingKey returns the ordering key of a message in wire form.
func orderingKey(wire []byte) (key string) {
	_ = eachField(wire, func(num protowire.Number, v []byte) error { // it was read before
		if num == 5 {
			key = string(v)
		}
		return nil
	})
	return key
}

// insert puts e behind another entry of the line, or first.
func (l *line) insert(e, behind *entry) {
	e.place = &place{line: l, before: behind, next: l.first}
	if behind == nil {
		l.first = e
	} else {
		e.place.next = behind.place.next
		behind.place.next = e
	}
	if e.place.next == nil {
		l.last = e
	} else {
		e.place.next.place.before = e
	}
}

// waits reports whether e is among those of the line that wait.
func (l *line) waits(e *entry) bool { return l.next != nil && l.next.msg.id <= e.msg.id }
