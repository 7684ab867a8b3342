package pubsubtest

import (
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"pgregory.net/rapid"
)

// queueServer is a server that does not listen.
func queueServer() *Server {
	s := &Server{cfg: Config{LeaseSecond: time.Second}, methods: newMethods()}
	s.resources.init()
	s.changes.init()
	return s
}

func newQueue(s *Server) *subscription {
	return newSubscription(s, &pubsubpb.Subscription{Name: "projects/p/subscriptions/sss", AckDeadlineSeconds: 10}, nil)
}

// A queueModel is what a subscription should hold, in plain maps.
type queueModel struct {
	t         *rapid.T
	q         *subscription
	consumers []*consumer
	attempts  map[uint64]uint32 // of messages not acknowledged
	leased    map[uint64]lease
	published uint64
	want      Stats
}

type lease struct {
	holder *consumer
	ends   time.Time
}

// Random publishes, deliveries, acknowledgements, extensions, returns, lapses
// and departures, against the plain model.
func TestSubscription_Model(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Inside a bubble t has no deadline to tell rapid of.
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			q := newQueue(queueServer())
			defer q.close()
			m := &queueModel{t: rt, q: q, attempts: make(map[uint64]uint32), leased: make(map[uint64]lease)}
			for i := range 3 {
				m.consumers = append(m.consumers, newConsumer(int32(10*(i+1)), int64(i*4), int64(i%2*30)))
				q.join(m.consumers[i])
			}
			rt.Repeat(map[string]func(*rapid.T){
				"":            func(*rapid.T) { m.check() },
				"publish":     m.publish,
				"take":        m.take,
				"acknowledge": m.acknowledge,
				"extend":      m.extend,
				"return":      m.giveBack,
				"wait":        m.wait,
			})
		})
	})
}

func (m *queueModel) publish(t *rapid.T) {
	n := rapid.IntRange(1, 700).Draw(t, "n")
	msgs := make([]stored, n)
	for i := range msgs {
		msgs[i].wire = []byte("0123456789")
		m.attempts[m.published] = 0
		m.published++
	}
	m.q.enqueue(msgs)
	m.want.Published += int64(n)
	m.want.Backlog += int64(n)
}

func (m *queueModel) take(t *rapid.T) {
	c := rapid.SampledFrom(m.consumers).Draw(t, "consumer")
	waiting := m.want.Backlog
	got := m.q.take(c, rapid.IntRange(1, 400).Draw(t, "limit"), nil)
	if len(got) == 0 && waiting > 0 && c.fitsLocked() {
		t.Fatalf("nothing for a consumer with room, %d wait", waiting)
	}
	for _, d := range got {
		attempt, known := m.attempts[d.seq]
		if _, leased := m.leased[d.seq]; leased || !known || d.attempt != attempt+1 {
			t.Fatalf("delivered %+v: leased %v, known %v, attempt %d", d, leased, known, attempt)
		}
		m.attempts[d.seq]++
		m.leased[d.seq] = lease{holder: c, ends: time.Now().Add(time.Duration(c.deadline) * time.Second)}
		if d.attempt > 1 {
			m.want.Redelivered++
		}
	}
	m.want.Delivered += int64(len(got))
	m.want.Outstanding += int64(len(got))
	m.want.Backlog -= int64(len(got))
	m.want.MaxOutstanding = max(m.want.MaxOutstanding, m.want.Outstanding)
	if c.maxCount > 0 && c.count > c.maxCount || c.maxBytes > 0 && c.bytes >= c.maxBytes+10 {
		t.Fatalf("flow control: %+v", c)
	}
}

// someIDs draws ack ids of messages, acknowledged or not, of their latest or an
// earlier delivery.
func (m *queueModel) someIDs(t *rapid.T) []ackID {
	if m.published == 0 {
		return nil
	}
	first := rapid.Uint64Range(0, m.published-1).Draw(t, "first")
	var ids []ackID
	for seq := first; seq < min(first+rapid.Uint64Range(1, 600).Draw(t, "ids"), m.published); seq++ {
		attempt := m.attempts[seq]
		if attempt > 1 && seq%7 == 0 {
			attempt--
		}
		ids = append(ids, ackID{seq: seq, attempt: attempt})
	}
	return ids
}

func (m *queueModel) acknowledge(t *rapid.T) {
	ids := m.someIDs(t)
	m.q.acknowledge(ids)
	for _, id := range ids {
		if m.attempts[id.seq] == 0 {
			continue // acknowledged, or never delivered
		}
		_, leased := m.leased[id.seq]
		if !leased || id.attempt != m.attempts[id.seq] {
			m.want.StaleAcks++
		}
		if leased {
			m.want.Outstanding--
		} else {
			m.want.Backlog--
		}
		m.want.Acknowledged++
		delete(m.attempts, id.seq)
		delete(m.leased, id.seq)
	}
}

func (m *queueModel) extend(t *rapid.T) {
	ids, seconds := m.someIDs(t), rapid.Int32Range(1, 40).Draw(t, "seconds")
	m.q.extend(ids, seconds)
	for _, id := range ids {
		if l, leased := m.leased[id.seq]; leased && id.attempt == m.attempts[id.seq] {
			l.ends = time.Now().Add(time.Duration(seconds) * time.Second)
			m.leased[id.seq] = l
			m.want.Extensions++
		}
	}
}

func (m *queueModel) giveBack(t *rapid.T) {
	ids := m.someIDs(t)
	m.q.extend(ids, 0)
	for _, id := range ids {
		if _, leased := m.leased[id.seq]; leased && id.attempt == m.attempts[id.seq] {
			delete(m.leased, id.seq)
			m.want.Returned++
			m.want.Outstanding--
			m.want.Backlog++
		}
	}
}

// wait lets time pass, and with it leases end, by less than a tick late.
func (m *queueModel) wait(t *rapid.T) {
	synctestSleep(time.Duration(rapid.IntRange(1, 15).Draw(t, "seconds")) * time.Second)
	for seq, l := range m.leased {
		if !l.ends.After(time.Now()) {
			delete(m.leased, seq)
			m.want.Lapsed++
			m.want.Outstanding--
			m.want.Backlog++
		}
	}
}

// synctestSleep lets the time of the bubble pass, to just after a tick.
func synctestSleep(d time.Duration) {
	time.Sleep(d + time.Second/ticksPerSecond) //nolint:forbidigo // virtual time
	synctest.Wait()
}

func (m *queueModel) check() {
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	got := m.q.stats
	got.Backlog = int64(m.q.backlogLocked())
	bytes := got.OutstandingBytes
	m.want.OutstandingBytes, m.want.MaxOutstandingBytes = 10*m.want.Outstanding, 10*m.want.MaxOutstanding
	if got != m.want {
		m.t.Fatalf("stats\n got %+v\nwant %+v", got, m.want)
	}
	held := make(map[*consumer]int64)
	for _, l := range m.leased {
		held[l.holder]++
	}
	for i, c := range m.consumers {
		if c.count != held[c] || c.bytes != 10*held[c] {
			m.t.Fatalf("consumer %d: holds %d in %d bytes, want %d", i, c.count, c.bytes, held[c])
		}
	}
	if live := m.q.entries.live(); live != len(m.attempts) || bytes != 10*got.Outstanding {
		m.t.Fatalf("%d entries for %d messages, %d bytes", live, len(m.attempts), bytes)
	}
}

// What is acknowledged must cost nothing any more, however much it was and even
// if one early message stays.
func TestSubscription_LetsGoOfWhatIsAcknowledged(t *testing.T) {
	q := newQueue(queueServer())
	defer q.close()
	c := newConsumer(10, 0, 0)
	q.join(c)
	var first ackID
	for round := range 100 {
		q.enqueue(make([]stored, 700))
		var ids []ackID
		for got := q.take(c, maxBatch, nil); len(got) > 0; got = q.take(c, maxBatch, nil) {
			for _, d := range got {
				ids = append(ids, ackID{seq: d.seq, attempt: d.attempt})
			}
		}
		if round == 0 {
			first, ids = ids[0], ids[1:]
		}
		q.acknowledge(ids)
	}
	held := 0
	for _, chunk := range q.entries.chunks {
		if chunk != nil {
			held++
		}
	}
	if held > 2 {
		t.Errorf("%d chunks held for one message", held)
	}
	q.acknowledge([]ackID{first})
	if n := len(q.entries.chunks); n > 1 {
		t.Errorf("%d chunks left of an empty subscription", n)
	}
}

// The idle take turns, and those woken for a batch share it.
func TestSubscription_IdleConsumersShare(t *testing.T) {
	q := newQueue(queueServer())
	defer q.close()
	var consumers []*consumer
	for range 4 {
		c := newConsumer(10, 0, 0)
		q.join(c)
		consumers = append(consumers, c)
		if got := q.take(c, maxBatch, nil); len(got) > 0 {
			t.Fatalf("took %v of nothing", got)
		}
	}
	q.enqueue(make([]stored, 100))
	for i, c := range consumers {
		select {
		case <-c.wake:
		default:
			t.Fatalf("consumer %d was not woken", i)
		}
		if got := q.take(c, maxBatch, nil); len(got) != 25 {
			t.Errorf("consumer %d took %d of 100", i, len(got))
		}
	}
	// One that is woken and leaves passes its turn on.
	for _, c := range consumers {
		q.take(c, maxBatch, nil)
	}
	q.enqueue(make([]stored, 1))
	<-consumers[0].wake
	q.leave(consumers[0])
	<-consumers[1].wake
	if got := q.take(consumers[1], maxBatch, nil); len(got) != 1 {
		t.Errorf("took %d, want 1", len(got))
	}
}
