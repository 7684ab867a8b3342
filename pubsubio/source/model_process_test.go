package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

// What a model has of the real code is in this file: a process has groups, which
// have readers, which bundles claim.

// A modelProcess is a worker: it has the readers of one Read.
type modelProcess struct {
	name    string
	client  *modelClient
	config  Config
	binding run.Binding
	groups  []*group // the last is the one in use; the others are gone
	readers []*reader
}

// group returns the one in use, as groupOf does.
func (p *modelProcess) group() *group {
	if n := len(p.groups); n > 0 {
		if _, err := p.groups[n-1].find(""); err == nil {
			return p.groups[n-1]
		}
	}
	p.groups = append(p.groups, newGroup("model", p.config, p.binding, new(stats.Source)))
	return p.group()
}

// enter claims the reader for a restriction, as enter does.
func (p *modelProcess) enter(at *modelPoint, token string) (*reader, *attempt, error) {
	for {
		g := p.group()
		r, err := g.find("reader")
		if err != nil {
			continue
		}
		if r == nil {
			name := fmt.Sprint(p.name, ".", len(p.readers))
			c := callsOver(p.client, p.client, testSubscription, name)
			c.close = func() {}
			g.mu.Lock()
			r = g.openLocked("reader", testSubscription, c)
			g.mu.Unlock()
			p.readers = append(p.readers, r)
		}
		a, err := r.claim(at.token, at.parent, token, true)
		if errors.Is(err, errEnded) {
			g.remove(r)
			continue
		}
		if err != nil {
			r.abandon()
		}
		return r, a, err
	}
}

// kill ends the process as SIGKILL does: nothing that it does counts any more, and
// the service is told nothing. What is left of it in this process is cleared away.
func (p *modelProcess) kill() {
	p.client.kill()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, r := range p.readers {
		r.mu.Lock()
		closing := r.ended
		r.mu.Unlock()
		if closing { // By itself; to wait for it on its Once would stop the bubble's clock.
			r.cancel()
			continue
		}
		r.close(ctx)
	}
	p.groups, p.readers = nil, nil
}

// watermark is what a bundle on r reports.
func (p *modelProcess) watermark(r *reader) time.Time {
	if p.binding.Prism {
		return r.group.watermark(time.Now())
	}
	return r.watermark(time.Now())
}

// unemitted returns the ids of what the process has, or has returned, and has not
// emitted.
func (p *modelProcess) unemitted(r *reader) map[string]bool {
	ids := make(map[string]bool)
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, h := range r.byID {
		if h.state == buffered {
			ids[id] = true
		}
	}
	r.awaiting.oldest(time.Now()) // lets go of what has not come again
	r.awaiting.mu.Lock()
	defer r.awaiting.mu.Unlock()
	for id := range r.awaiting.byID {
		ids[id] = true
	}
	return ids
}

// closed reports whether every reader there ever was has ended by itself.
func (p *modelProcess) closed() bool {
	for _, g := range p.groups {
		if !g.allClosed() {
			return false
		}
	}
	return true
}

// forgot returns a message that the service has leased to the process and that the
// process neither holds nor returns, nil for none.
func (p *modelProcess) forgot() *modelMessage {
	s := p.client.service
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	for _, m := range s.messages {
		if m.state == out && m.at.client == p.client && !p.holds(m) {
			return m
		}
	}
	return nil
}

func (p *modelProcess) holds(m *modelMessage) bool {
	for _, r := range p.readers {
		r.mu.Lock()
		h, ok := r.byID[m.id]
		held := ok && h.ackID == m.ackID || len(r.leaving)+len(r.late)+r.returns.owed() > 0
		r.mu.Unlock()
		if held {
			return true
		}
	}
	return false
}

// left says what a process holds though everything is acknowledged, "" for
// nothing.
func (p *modelProcess) left() string {
	for _, g := range p.groups {
		for _, r := range g.all() {
			if s := leftIn(r); s != "" {
				return s
			}
		}
		if m, b := g.gate.messages.Load(), g.gate.bytes.Load(); m != 0 || b != 0 {
			return fmt.Sprintf("the gate of the buffers counts %d messages, %d bytes", m, b)
		}
		for _, w := range g.awaiting {
			w.oldest(time.Now())
			if len(w.byID)+len(w.next) > 0 || w.n.Load() != 0 {
				return fmt.Sprintf("%d messages are awaited", len(w.byID))
			}
		}
	}
	return ""
}

func leftIn(r *reader) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leases.due(time.Now())
	for id, h := range r.byID {
		return fmt.Sprintf("%s is held, in state %d, with ack id %s", id, h.state, h.ackID)
	}
	for what, n := range map[string]int{
		"bytes held":                 int(r.bytes),
		"messages in the buffer":     r.fifo.messages,
		"bytes in the buffer":        int(r.fifo.bytes),
		"messages owed":              r.ledger.owed,
		"leases":                     len(r.leases.list),
		"messages to be returned":    len(r.leaving),
		"acknowledgements under way": r.acks.owed(),
		"returns under way":          r.returns.owed(),
	} {
		if n != 0 {
			return fmt.Sprintf("%s: %d", what, n)
		}
	}
	return ""
}

// A modelBundle is one attempt at a restriction.
type modelBundle struct {
	process  *modelProcess
	reader   *reader
	attempt  *attempt
	from     *modelPoint
	emitted  []*modelMessage
	has      bool // ProcessElement has returned
	finished uint64
}

// take emits up to n messages. An error is the bundle's end.
func (b *modelBundle) take(s *modelService, n int) error {
	taken, err := b.reader.take(b.attempt, nil, n, 1<<30)
	for _, d := range taken {
		m := s.find(d.msg.ID)
		if string(d.msg.Data) != "data of "+m.id {
			return fmt.Errorf("%w: %s was emitted with data %q", errModel, m, d.msg.Data)
		}
		b.emitted = append(b.emitted, m)
	}
	return err
}

// leave ends ProcessElement.
func (b *modelBundle) leave() error {
	if b.has {
		return nil
	}
	b.has = true
	_, err := b.reader.leave(b.attempt, len(b.emitted))
	return err
}

// finish answers the runner, at a tick.
func (b *modelBundle) finish(tick uint64) {
	b.finished = tick
	b.reader.finished(b.attempt)
}

// fail answers the runner with an error.
func (b *modelBundle) fail() { b.reader.fail(b.attempt) }

// finalize is the runner's word that it has finalized the bundle.
func (b *modelBundle) finalize(tick uint64) {
	b.reader.signal(b.attempt, finalize.Signal{Finished: b.finished, Arrived: tick})
}

// errModel marks a broken promise, as against an error that a bundle may end with.
var errModel = errors.New("broken promise")
