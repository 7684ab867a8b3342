package source

import (
	"hash/maphash"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

const (
	// windowTime is how long the id of an acknowledged message is remembered, as long
	// as Dataflow's own reads do; windowSize is how many are, at most: about 40 MB.
	windowTime = 10 * time.Minute
	windowSize = 500_000
)

// identities finds the copies among a reader's messages: those with the id of
// another in the attribute that carries it.
//
// A copy of a message that is held joins it, and is acknowledged or returned with
// it. It must not be acknowledged before: should the bundle of its original fail, and
// the original be lost to another worker, the copy would have been the last of it.
// An id is remembered only once its original is committed, for the same reason, and
// forgotten with an original that is returned.
//
// The reader's mutex guards it.
type identities struct {
	attribute string // empty where messages have no id of their own
	originals map[string]*held
	done      window
}

func newIdentities(attribute string) identities {
	i := identities{attribute: attribute}
	if attribute != "" {
		i.originals, i.done = make(map[string]*held), newWindow()
	}
	return i
}

// of returns the id of a message, empty where it has none: it has no copies then.
func (i *identities) of(m *message.Message) string {
	if i.attribute == "" {
		return ""
	}
	return m.Attributes[i.attribute]
}

// A kinship says what a message is to the others.
type kinship int

const (
	original   kinship = iota
	joined             // a copy of a message that is held
	afterwards         // a copy of a message that is committed
)

// add takes in a message that was just received.
func (i *identities) add(h *held, now time.Time) kinship {
	id := i.of(h.msg)
	if id == "" {
		return original
	}
	if first, ok := i.originals[id]; ok {
		h.state, h.msg = copied, nil
		first.identity.copies = append(first.identity.copies, h)
		return joined
	}
	if i.done.has(id, now) {
		h.msg = nil
		return afterwards
	}
	h.identity = &identity{id: id}
	i.originals[id] = h
	return original
}

// An identity is what is known of a message that has an id.
type identity struct {
	id     string
	copies []*held
}

// settle hears that messages were committed, or else given up, and returns the
// copies that share their fate.
func (i *identities) settle(items []*held, committed bool, now time.Time) (copies []*held) {
	if i.attribute == "" {
		return nil
	}
	for _, h := range items {
		if h.identity == nil {
			continue
		}
		copies = append(copies, h.identity.copies...)
		delete(i.originals, h.identity.id)
		if committed {
			i.done.add(h.identity.id, now)
		}
		h.identity = nil
	}
	return copies
}

// A window remembers ids for windowTime, and no more than windowSize of them. It keeps
// 128 bits of each, hashed with seeds of its own: that two ids share them is not to
// be expected, whoever chose them.
type window struct {
	seeds [2]maphash.Seed
	known map[fingerprint]struct{}
	order []remembered // from head on, the oldest first
	head  int
}

type fingerprint [2]uint64

type remembered struct {
	id fingerprint
	at time.Time
}

func newWindow() window {
	return window{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		known: make(map[fingerprint]struct{}),
	}
}

func (w *window) fingerprint(id string) fingerprint {
	return fingerprint{maphash.String(w.seeds[0], id), maphash.String(w.seeds[1], id)}
}

func (w *window) has(id string, now time.Time) bool {
	w.forget(now, windowSize)
	_, ok := w.known[w.fingerprint(id)]
	return ok
}

// add remembers an id from now on.
func (w *window) add(id string, now time.Time) {
	f := w.fingerprint(id)
	if _, ok := w.known[f]; ok {
		return
	}
	w.forget(now, windowSize-1)
	w.known[f] = struct{}{}
	w.order = append(w.order, remembered{f, now})
}

// forget drops what is too old, and the oldest beyond so many.
func (w *window) forget(now time.Time, most int) {
	for len(w.known) > 0 && (len(w.known) > most || now.Sub(w.order[w.head].at) >= windowTime) {
		delete(w.known, w.order[w.head].id)
		w.head++
	}
	if 2*w.head > len(w.order) { // Moving the rest costs no more than what was dropped.
		w.order = append(w.order[:0], w.order[w.head:]...)
		w.head = 0
	}
}
