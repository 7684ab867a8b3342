package replay

import (
	"fmt"
	"sync"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

// maxPartBytes bounds what is kept of letters whose other parts have not come: fifty of
// the largest messages.
const maxPartBytes = 512 << 20

// parts makes letters whole that were too large for one message.
//
// The message of a whole letter is emitted with the last of its parts to come, and so that
// part is acknowledged once the message is published. The others stay in the subscription
// until the read has ended, as what is left does: should the bundle fail, or the process
// be killed, the next run has all of them. Only a run that has published everything sweeps
// them out.
type parts struct {
	limit   int64 // of bytes
	mu      sync.Mutex
	waiting map[string]map[int]dlq.Entry // by the letter's id and the part's number
	bytes   int64                        // of those
	whole   map[string]fate              // by the letter's id
	swept   int
}

// fate is what became of a letter that is whole.
type fate struct {
	of        int // parts
	published bool
}

func newParts(limit int64) *parts {
	return &parts{limit: limit, waiting: make(map[string]map[int]dlq.Entry), whole: make(map[string]fate)}
}

// add takes in a part, and returns the letter where it is whole now; else why the part is
// left, or "" where it waits for others, or its letter was whole before.
func (p *parts) add(e dlq.Entry) (letter *dlq.Entry, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := e.Part.ID
	if _, ok := p.whole[id]; ok {
		return nil, ""
	}
	if _, again := p.waiting[id][e.Part.Number]; !again {
		if p.bytes+int64(len(e.Part.Data)) > p.limit {
			return nil, fmt.Sprintf("a part of a letter in %d: too many others wait for their parts", e.Part.Of)
		}
		p.bytes += int64(len(e.Part.Data))
		if p.waiting[id] == nil {
			p.waiting[id] = make(map[int]dlq.Entry)
		}
		p.waiting[id][e.Part.Number] = e
	}
	if len(p.waiting[id]) < e.Part.Of {
		return nil, ""
	}
	return p.joinLocked(e)
}

// joinLocked returns the letter of which e is the last part.
func (p *parts) joinLocked(e dlq.Entry) (letter *dlq.Entry, why string) {
	var all []dlq.Entry
	for _, part := range p.waiting[e.Part.ID] {
		all = append(all, part)
		p.bytes -= int64(len(part.Part.Data))
	}
	delete(p.waiting, e.Part.ID)
	p.whole[e.Part.ID] = fate{of: e.Part.Of}
	joined, err := dlq.Join(all...)
	if err != nil {
		return nil, err.Error()
	}
	joined.ID = e.ID
	return &joined, ""
}

// published hears that a whole letter's message is emitted, with the last of its parts.
func (p *parts) published(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.whole[id] = fate{of: p.whole[id].of, published: true}
}

// missing calls each with the parts whose letters never became whole.
func (p *parts) missing(each func(e dlq.Entry, why string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, letter := range p.waiting {
		for _, e := range letter {
			each(e, fmt.Sprintf("a part of a letter in %d, of which others are not there: a replay that was killed may have published it", e.Part.Of))
		}
	}
}

// sweep reports whether e is a part of a letter that was published.
func (p *parts) sweep(e dlq.Entry) bool {
	if e.Part == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.whole[e.Part.ID].published {
		return false
	}
	p.swept++
	return true
}

// toSweep returns how many parts of published letters are still in the subscription: all
// but the last of each.
func (p *parts) toSweep() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := -p.swept
	for _, f := range p.whole {
		if f.published {
			n += f.of - 1
		}
	}
	return max(n, 0)
}
