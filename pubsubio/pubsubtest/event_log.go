package pubsubtest

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// An eventLog keeps events, with their names and ids not yet spelled out. A nil
// log keeps nothing.
type eventLog struct {
	mu   sync.Mutex // guards all below
	seq  uint64     // of the latest event
	ring ring[record]
}

type record struct {
	at       time.Time
	kind     Kind
	seq      uint64
	method   string
	topic    string
	sub      string
	msg      *stored
	stream   uint64
	attempt  uint32
	seconds  int32
	code     codes.Code
	staleAck bool
}

func newEventLog(limit int) *eventLog {
	if limit == 0 {
		return nil
	}
	return &eventLog{ring: ring[record]{limit: limit}}
}

func (l *eventLog) addLocked(r record) {
	l.seq++
	r.seq = l.seq
	l.ring.push(r)
}

func (l *eventLog) add(r record) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addLocked(r)
}

func (l *eventLog) published(at time.Time, t *topic, msgs []stored) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range msgs {
		l.addLocked(record{at: at, kind: Publish, topic: t.name, msg: &msgs[i]})
	}
}

func (l *eventLog) delivered(at time.Time, q *subscription, c *consumer, ds []delivery) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range ds {
		l.addLocked(record{at: at, kind: Deliver, sub: q.name, msg: d.msg, attempt: d.attempt, stream: c.number})
	}
}

func (l *eventLog) acknowledged(at time.Time, q *subscription, d delivery, stale bool) {
	l.add(record{at: at, kind: Acknowledge, sub: q.name, msg: d.msg, attempt: d.attempt, staleAck: stale})
}

// settled adds an Extend, a Return or a Lapse.
func (l *eventLog) settled(at time.Time, k Kind, q *subscription, d delivery, seconds int32) {
	l.add(record{at: at, kind: k, sub: q.name, msg: d.msg, attempt: d.attempt, seconds: seconds})
}

func (l *eventLog) stream(k Kind, q *subscription, c *consumer, err error) {
	l.add(record{at: time.Now(), kind: k, sub: q.name, stream: c.number, code: status.Code(err)})
}

func (l *eventLog) refused(method, resource string, err error) {
	l.add(record{at: time.Now(), kind: Refused, method: method, sub: resource, code: status.Code(err)})
}

// since returns the kept events after the given number.
func (l *eventLog) since(seq uint64) []Event {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var events []Event
	l.ring.each(l.seq-seq, func(r record) { events = append(events, r.event()) })
	return events
}

func (r record) event() Event {
	e := Event{
		Seq: r.seq, Time: r.at, Kind: r.kind, Method: r.method, Topic: r.topic, Subscription: r.sub,
		Attempt: int(r.attempt), Stale: r.staleAck, Seconds: int(r.seconds), Stream: r.stream, Code: r.code, msg: r.msg,
	}
	if r.msg != nil {
		e.MessageID = r.msg.idString()
	}
	return e
}
