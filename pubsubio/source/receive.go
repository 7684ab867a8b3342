package source

import (
	"context"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// accept takes in the messages of a response that came on a stream of that context,
// under that lease.
func (r *reader) accept(ctx context.Context, received []arrival, g grant) {
	if len(received) == 0 {
		return
	}
	slab := make([]held, len(received)) // One allocation; what is held long is small.
	for i, a := range received {
		at, timed := r.eventTime(a.msg)
		slab[i] = held{
			msg:       a.msg,
			id:        a.msg.ID,
			ackID:     a.ackID,
			eventTime: at,
			untimed:   !timed,
			size:      sizeOf(a.msg),
			delivery:  a.msg.DeliveryAttempt,
		}
	}
	r.counts.Received.Add(int64(len(received)))
	r.acceptHeld(ctx, slab, g)
	r.group.changed.signal()
}

func (r *reader) acceptHeld(ctx context.Context, slab []held, g grant) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gap, r.came = now.Sub(r.came), now
	fresh := make([]*held, 0, len(slab))
	for i := range slab {
		h := &slab[i]
		r.awaiting.came(h.id)
		if r.renewLocked(h.id, h.ackID, h.delivery, g, now) {
			continue
		}
		r.byID[h.id] = h
		r.bytes += h.size
		r.leases.add(h, g, now)
		if kin := r.identities.add(h, now); kin != original {
			r.counts.Copies.Add(1)
			if kin == afterwards {
				r.acknowledgeLocked([]*held{h}, now)
			}
			continue
		}
		fresh = append(fresh, h)
	}
	if len(fresh) == 0 {
		return
	}
	if ctx.Err() != nil { // The stream is to be closed by now, others may be open.
		for _, h := range fresh {
			h.state = gone
		}
		r.leaving = append(r.leaving, fresh...)
		return
	}
	oldest := r.holdLocked(fresh)
	r.bufferLocked(func() { r.fifo.push(fresh, oldest, now) })
	r.wm.received(oldest, now)
	r.parkIfPausedLocked(now)
}

// renewLocked takes in another delivery of a message that is still held, and
// reports whether it is. An extension came too late, or was lost; only the newest
// ack id is sure to count.
func (r *reader) renewLocked(id, ackID string, delivery int, g grant, now time.Time) bool {
	h, ok := r.byID[id]
	if !ok {
		return false
	}
	r.counts.Redelivered.Add(1)
	h.ackID, h.delivery = ackID, delivery
	r.leases.add(h, g, now)
	return true
}

// A late message came while its stream was being closed.
type late struct {
	id, ackID string
	eventTime time.Time
	delivery  int
	grant     grant
}

// acceptLate keeps what came on a stream that is being closed until all of the
// reader's are: on one that is still open they would come again. Their data is not
// kept, as there may be many, so they never reach the buffer, whether or not the
// reader opens streams again meanwhile.
func (r *reader) acceptLate(received []arrival, g grant) {
	r.counts.Received.Add(int64(len(received)))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range received {
		at, _ := r.eventTime(a.msg)
		r.late = append(r.late, late{
			id: a.msg.ID, ackID: a.ackID,
			eventTime: at, delivery: a.msg.DeliveryAttempt, grant: g,
		})
	}
}

// returnLateLocked returns what came while the streams were being closed.
func (r *reader) returnLateLocked(now time.Time) {
	returned := make([]*held, 0, len(r.late))
	for _, m := range r.late {
		if !r.renewLocked(m.id, m.ackID, m.delivery, m.grant, now) {
			returned = append(returned, &held{id: m.id, ackID: m.ackID, eventTime: m.eventTime})
			r.leased = later(r.leased, now.Add(m.grant.period))
		}
	}
	r.late = nil
	r.awaiting.add(returned, now)
	r.returns.add(ackIDsOf(returned))
}

// Serialized, a field takes two bytes beside its contents, an attribute six; the
// publish time takes twelve in all.
const (
	fieldOverhead     = 2
	attributeOverhead = 6
	publishTimeSize   = 12
)

// sizeOf returns the serialized size of m but for a few bytes: where fields are
// large their lengths take more. The exact size costs half of what the reader
// does with a message in all.
func sizeOf(m *message.Message) int64 {
	size := len(m.Data) + len(m.ID) + len(m.OrderingKey) + 3*fieldOverhead + publishTimeSize
	for k, v := range m.Attributes {
		size += len(k) + len(v) + attributeOverhead
	}
	return int64(size)
}
