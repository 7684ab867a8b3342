package publish

import (
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A batch is one publish request, from its first message to its verdict.
//
// Its payload is filled under the pool's lock, until the batch is sent for the
// first time, and is read-only then: a transport may still be reading it for an
// attempt that has failed. What is to be left out later is left out of a copy,
// which cutLocked makes.
type batch struct {
	// Set once.
	lane    *lane
	payload *payload
	since   int // incidents of its topic that had ended in an error when it was opened

	// Guarded by the pool's lock.
	shares []share
	last   int // index of the share that was added to last
	sent   int // how often its messages were sent in a larger batch
	state  batchState
	wake   chan struct{} // while it rests: closed when nobody wants it any more
}

// A batchState says who may touch a batch.
type batchState int

const (
	unsent  batchState = iota // being filled, or waiting for its lane: messages can be taken out
	onWire                    // an attempt is under way: its messages keep their room until it is answered
	resting                   // between attempts: its messages give their room back as soon as their bundle ends
	settled                   // has its verdict, or was cut into others
)

// A share is what one bundle has in a batch. It is void, with no bundle and no
// messages, once they were taken out or given up.
type share struct {
	bundle   *Bundle
	messages int
	bytes    int64
}

func (s *share) take(held share) {
	s.messages -= held.messages
	s.bytes -= held.bytes
}

// sentLocked notes that t, which was never sent, is now.
func (p *pool) sentLocked(t *batch) {
	t.state = onWire
	for _, s := range t.shares {
		p.unsent.take(s)
	}
}

func (p *pool) newBatchLocked(l *lane) *batch {
	t := &batch{lane: l, payload: p.payloads.get(), since: l.publisher.failures}
	t.payload.buf = append(t.payload.buf, l.publisher.header...)
	l.publisher.batches++
	return t
}

// size is the request's serialized size.
func (t *batch) size() int { return len(t.payload.buf) }

// messages is how many messages the request has.
func (t *batch) messages() int { return len(t.payload.entries) }

// add encodes m, of that size on the wire, into the batch, for b.
func (t *batch) add(b *Bundle, m *message.Message, size int, tag int64) {
	t.payload.buf = appendMessage(t.payload.buf, m, size)
	t.noteLocked(b, int64(sizeFramed(size)), tag)
}

// noteLocked notes that the bytes last appended to the payload are a message of b.
func (t *batch) noteLocked(b *Bundle, framed int64, tag int64) {
	i := t.shareOf(b)
	t.shares[i].messages++
	t.shares[i].bytes += framed
	t.payload.entries = append(t.payload.entries, entry{end: int32(t.size()), share: int32(i), tag: tag})
}

// shareOf returns the index of b's share. A batch has one for each bundle that
// is running on the worker, at most: few.
func (t *batch) shareOf(b *Bundle) int {
	if len(t.shares) > 0 && t.shares[t.last].bundle == b {
		return t.last
	}
	for i := range t.shares {
		if t.shares[i].bundle == b {
			t.last = i
			return i
		}
	}
	t.shares = append(t.shares, share{bundle: b})
	t.last = len(t.shares) - 1
	b.batches[t] = struct{}{}
	t.lane.publisher.wanted++
	return t.last
}

// decode returns the i-th message of the request, as its receiver would get it.
func (t *batch) decode(i int) (*message.Message, error) {
	start := int32(len(t.lane.publisher.header))
	if i > 0 {
		start = t.payload.entries[i-1].end
	}
	return decodeMessage(t.payload.buf[start:t.payload.entries[i].end])
}

// voidLocked makes b's share void and returns what it was.
func (t *batch) voidLocked(b *Bundle) share {
	for i, s := range t.shares {
		if s.bundle == b {
			// Its index stays taken: the entries name shares by index.
			t.shares[i] = share{}
			return s
		}
	}
	return share{}
}

// removeLocked takes b's messages out of a batch that was never sent and returns
// what they held.
func (t *batch) removeLocked(b *Bundle) share {
	out := t.voidLocked(b)
	if out.messages == 0 {
		return out
	}
	buf := t.payload.buf
	from := int32(len(t.lane.publisher.header))
	to, kept := from, t.payload.entries[:0]
	for _, e := range t.payload.entries {
		if t.shares[e.share].bundle != nil {
			to += int32(copy(buf[to:], buf[from:e.end]))
			kept = append(kept, entry{end: to, share: e.share, tag: e.tag})
		}
		from = e.end
	}
	t.payload.buf, t.payload.entries = buf[:to], kept
	return out
}

// deadLocked reports whether some of t's messages are of no more use.
func (t *batch) deadLocked() bool {
	for _, s := range t.shares {
		if s.bundle == nil || s.bundle.doneLocked() {
			return true
		}
	}
	return false
}

// wantedLocked reports whether anybody waits for t's verdict.
func (t *batch) wantedLocked() bool {
	for _, s := range t.shares {
		if s.bundle != nil && !s.bundle.doneLocked() {
			return true
		}
	}
	return false
}

// cutLocked returns a batch of those of t's messages from..to that are still
// wanted, or nil where none is. t stays as it is.
func (p *pool) cutLocked(t *batch, from, to int) *batch {
	part := p.newBatchLocked(t.lane)
	part.since = t.since
	start := int32(len(t.lane.publisher.header))
	if from > 0 {
		start = t.payload.entries[from-1].end
	}
	for _, e := range t.payload.entries[from:to] {
		if b := t.shares[e.share].bundle; b != nil && !b.doneLocked() {
			part.payload.buf = append(part.payload.buf, t.payload.buf[start:e.end]...)
			part.noteLocked(b, int64(e.end-start), e.tag)
		}
		start = e.end
	}
	if part.messages() == 0 {
		p.closeBatchLocked(part)
		part.payload.release()
		return nil
	}
	return part
}

// replaceLocked ends t, whose messages went on in parts: what is in none of them
// gives its room back.
func (p *pool) replaceLocked(t *batch, parts ...*batch) {
	var held share
	for _, s := range t.shares {
		held.messages += s.messages
		held.bytes += s.bytes
	}
	for _, part := range parts {
		if part == nil {
			continue
		}
		for _, s := range part.shares {
			held.messages -= s.messages
			held.bytes -= s.bytes
		}
	}
	p.closeBatchLocked(t)
	t.payload.release()
	p.giveBackLocked(held)
}

// closeBatchLocked takes a batch off the books of its bundles and its publisher.
func (p *pool) closeBatchLocked(t *batch) {
	t.state = settled
	d := t.lane.publisher
	d.batches--
	for _, s := range t.shares {
		if s.bundle != nil && !s.bundle.ended {
			delete(s.bundle.batches, t)
			d.wanted--
		}
	}
	if d.cleanLocked() && d.cut && !d.gone {
		p.topics.release(d)
	}
	d.wakeLineLocked()
}
