package pubsubtest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"
)

// A lineModel is what a subscription with message ordering should hold, in plain
// slices.
type lineModel struct {
	t         *rapid.T
	q         *subscription
	consumers []*consumer
	keys      map[string][]*modelMessage // not let go, in their order
	retained  []*modelMessage            // acknowledged
	epoch     time.Time                  // the message 1 is published a nanosecond later
	published uint64
	want      Stats
}

type modelMessage struct {
	id      uint64
	key     string
	seq     uint64 // of its latest delivery
	attempt uint32
	owner   *owner // while leased
	ends    time.Time
	acked   bool
	counted bool
}

func (m *modelMessage) waits() bool { return m.owner == nil && !m.acked }

// Random publishes, deliveries, acknowledgements, returns, lapses, departures and
// seeks, with messages of few keys and of none.
func TestLines_Model(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			config := &pubsubpb.Subscription{Name: "projects/p/subscriptions/sss", AckDeadlineSeconds: 10, EnableMessageOrdering: true, RetainAckedMessages: true, MessageRetentionDuration: durationpb.New(maxRetention)}
			q := newSubscription(queueServer(), config, nil)
			defer q.close()
			m := &lineModel{t: rt, q: q, keys: make(map[string][]*modelMessage), epoch: time.Now()}
			for i := range 4 {
				c := newConsumer(int32(10*(i+1)), int64(i*4), 0)
				if i > 1 {
					c.clientID = "two streams of one client"
				}
				m.consumers = append(m.consumers, c)
				q.join(c)
			}
			rt.Repeat(map[string]func(*rapid.T){
				"":            func(*rapid.T) { m.check() },
				"publish":     m.publish,
				"take":        m.take,
				"acknowledge": func(t *rapid.T) { m.settle(t, m.acknowledge) },
				"return":      func(t *rapid.T) { m.settle(t, m.giveBack) },
				"wait":        m.wait,
				"reopen":      m.reopen,
				"seek":        m.seek,
			})
		})
	})
}

func (m *lineModel) publish(t *rapid.T) {
	msgs := make([]stored, rapid.IntRange(1, 20).Draw(t, "n"))
	for i := range msgs {
		key := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "key")
		m.published++
		wire, err := proto.Marshal(&pubsubpb.PubsubMessage{Data: []byte("x"), OrderingKey: key})
		if err != nil {
			t.Fatal(err)
		}
		msgs[i] = stored{wire: wire, id: m.published, published: m.epoch.UnixNano() + int64(m.published)}
		m.keys[key] = append(m.keys[key], &modelMessage{id: m.published, key: key})
	}
	m.q.enqueue(msgs)
	m.want.Published += int64(len(msgs))
}

func (m *lineModel) find(id uint64) (key string, i int) {
	for key, line := range m.keys {
		if i := slices.IndexFunc(line, func(mm *modelMessage) bool { return mm.id == id }); i >= 0 {
			return key, i
		}
	}
	return "", -1
}

func (m *lineModel) take(t *rapid.T) {
	c := rapid.SampledFrom(m.consumers).Draw(t, "consumer")
	available := m.availableTo(c)
	got := m.q.take(c, rapid.IntRange(1, 12).Draw(t, "limit"), nil)
	if len(got) == 0 && available && c.fitsLocked() {
		t.Fatal("nothing for a consumer with room")
	}
	for _, d := range got {
		key, i := m.find(d.msg.id)
		if i < 0 {
			t.Fatalf("delivered %d, which is acknowledged", d.msg.id)
		}
		line := m.keys[key]
		if mm := line[i]; !mm.waits() || d.attempt != mm.attempt+1 {
			t.Fatalf("delivered %d as attempt %d: %+v", d.msg.id, d.attempt, mm)
		}
		for _, before := range line[:i] {
			if key != "" && (before.waits() || before.owner != nil && before.owner != c.owner) {
				t.Fatalf("delivered %d of %q before %d, %+v", d.msg.id, key, before.id, before)
			}
		}
		line[i].owner, line[i].attempt, line[i].seq = c.owner, d.attempt, d.seq
		line[i].ends = time.Now().Add(time.Duration(c.deadline) * time.Second)
		m.want.Delivered++
		if d.attempt > 1 {
			m.want.Redelivered++
		}
	}
	m.countOutstanding()
}

// availableTo reports whether a message waits that may go to c.
func (m *lineModel) availableTo(c *consumer) bool {
	for key, line := range m.keys {
		if key != "" && slices.ContainsFunc(line, func(mm *modelMessage) bool { return mm.owner != nil && mm.owner != c.owner }) {
			continue
		}
		if slices.ContainsFunc(line, (*modelMessage).waits) {
			return true
		}
	}
	return false
}

// settle draws messages of one key that are leased, in any order, and treats
// their latest deliveries one after the other.
func (m *lineModel) settle(t *rapid.T, treat func(key string, id uint64, ids []ackID)) {
	key := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "of key")
	var leased []uint64
	for _, mm := range m.keys[key] {
		if mm.owner != nil {
			leased = append(leased, mm.id)
		}
	}
	if len(leased) == 0 {
		return
	}
	for _, id := range rapid.Permutation(leased).Draw(t, "order")[:rapid.IntRange(1, len(leased)).Draw(t, "n")] {
		_, i := m.find(id)
		if i < 0 || m.keys[key][i].owner == nil {
			continue // recalled by an earlier one
		}
		treat(key, id, []ackID{{seq: m.keys[key][i].seq, attempt: m.keys[key][i].attempt}})
	}
}

func (m *lineModel) acknowledge(key string, id uint64, ids []ackID) {
	m.q.acknowledge(ids)
	_, i := m.find(id)
	mm := m.keys[key][i]
	mm.owner, mm.acked = nil, true
	if !mm.counted {
		mm.counted = true
		m.want.Acknowledged++
		m.retained = append(m.retained, mm)
	}
	if key == "" {
		m.keys[key] = slices.Delete(m.keys[key], i, i+1)
	}
	m.trim(key)
}

// trim lets go of what is acknowledged and follows nothing that is not.
func (m *lineModel) trim(key string) {
	for key != "" && len(m.keys[key]) > 0 && m.keys[key][0].acked {
		m.keys[key] = m.keys[key][1:]
	}
}

// seek purges what was published before a message, and brings back what is
// retained of the others.
func (m *lineModel) seek(t *rapid.T) {
	to := rapid.Uint64Range(0, m.published+1).Draw(t, "to")
	m.q.seek(m.epoch.Add(time.Duration(to)))
	for key := range m.keys {
		m.keys[key] = slices.DeleteFunc(m.keys[key], func(mm *modelMessage) bool {
			if mm.id >= to {
				return false
			}
			if !mm.counted {
				m.want.Purged++
				m.retained = append(m.retained, mm)
			}
			return true
		})
		m.trim(key)
	}
	slices.SortFunc(m.retained, func(a, b *modelMessage) int { return int(a.id) - int(b.id) })
	var left []*modelMessage
	for _, old := range m.retained {
		if old.id < to {
			left = append(left, old)
			continue
		}
		m.restore(old.key, old.id)
	}
	m.retained = left
}

func (m *lineModel) restore(key string, id uint64) {
	if _, i := m.find(id); i >= 0 {
		mm := m.keys[key][i]
		if mm.acked {
			mm.acked = false
			m.want.Restored++
			m.again(key, id)
		}
		mm.counted = false
		return
	}
	m.want.Restored++
	i := 0
	for i < len(m.keys[key]) && m.keys[key][i].id < id {
		i++
	}
	m.keys[key] = slices.Insert(m.keys[key], i, &modelMessage{id: id, key: key})
	m.again(key, id)
}

func (m *lineModel) giveBack(key string, id uint64, ids []ackID) {
	m.q.extend(ids, 0)
	m.want.Returned++
	m.again(key, id)
}

// again makes a message wait, and all that come after it.
func (m *lineModel) again(key string, id uint64) {
	_, i := m.find(id)
	line := m.keys[key]
	line[i].owner = nil
	if key == "" {
		return
	}
	for _, after := range line[i+1:] {
		if after.owner != nil {
			m.want.Recalled++
		}
		after.owner, after.acked = nil, false
	}
}

func (m *lineModel) wait(t *rapid.T) {
	synctestSleep(time.Duration(rapid.IntRange(1, 15).Draw(t, "seconds")) * time.Second)
	// Which of several leases that end at once comes first is the server's
	// choice: the sum of those that lapsed and were recalled is not.
	ended := int64(0)
	for key, line := range m.keys {
		for i, mm := range line {
			if mm.owner == nil || mm.ends.After(time.Now()) {
				continue
			}
			if key == "" {
				mm.owner = nil
				ended++
				continue
			}
			for _, after := range line[i:] {
				if after.owner != nil {
					ended++
				}
				after.owner, after.acked = nil, false
			}
		}
	}
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	lapsed, recalled := m.q.stats.Lapsed-m.want.Lapsed, m.q.stats.Recalled-m.want.Recalled
	if lapsed+recalled != ended || ended > 0 && lapsed == 0 {
		t.Fatalf("%d lapsed and %d recalled, want %d in all", lapsed, recalled, ended)
	}
	m.want.Lapsed, m.want.Recalled = m.q.stats.Lapsed, m.q.stats.Recalled
}

// reopen closes a stream and opens another in its place.
func (m *lineModel) reopen(t *rapid.T) {
	i := rapid.IntRange(0, len(m.consumers)-1).Draw(t, "consumer")
	old := m.consumers[i]
	m.q.leave(old)
	c := newConsumer(old.deadline, old.maxCount, 0)
	c.clientID = old.clientID
	m.q.join(c)
	m.consumers[i] = c
}

func (m *lineModel) countOutstanding() (outstanding, waiting int64) {
	for _, line := range m.keys {
		for _, mm := range line {
			if mm.owner != nil {
				outstanding++
			}
			if mm.waits() {
				waiting++
			}
		}
	}
	m.want.MaxOutstanding = max(m.want.MaxOutstanding, outstanding)
	return outstanding, waiting
}

func (m *lineModel) check() {
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	got := m.q.stats
	got.Backlog = int64(m.q.backlogLocked())
	got.OutstandingBytes, got.MaxOutstandingBytes = 0, 0
	m.want.Outstanding, m.want.Backlog = m.countOutstanding()
	if got != m.want {
		m.t.Fatalf("stats\n got %+v\nwant %+v", got, m.want)
	}
	live := 0
	for key, line := range m.keys {
		live += len(line)
		if key == "" {
			continue
		}
		if l := m.q.lines.byKey[key]; (l != nil) != (len(line) > 0) {
			m.t.Fatalf("key %q: %d messages, a line: %v", key, len(line), l != nil)
		}
	}
	if n := m.q.entries.live(); n != live {
		m.t.Fatalf("%d entries for %d messages", n, live)
	}
	for id := range m.q.lines.owners {
		if id == "" || len(m.q.lines.owners) > 1 {
			m.t.Fatalf("owners %v", m.q.lines.owners)
		}
	}
	m.checkNoneIsForgotten()
}

// checkNoneIsForgotten finds what waits and can be taken with somebody on the way
// to take it, or with nobody idle.
func (m *lineModel) checkNoneIsForgotten() {
	idle := len(m.q.idle) > 0
	if idle && m.q.woken == 0 && m.q.waitingLocked() > 0 {
		m.t.Fatalf("%d messages wait for any of %d idle consumers", m.q.waitingLocked(), len(m.q.idle))
	}
	for _, c := range m.q.idle {
		if c.owner.waiting > 0 {
			m.t.Fatalf("an idle consumer has %d messages to itself", c.owner.waiting)
		}
	}
}
