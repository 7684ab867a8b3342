package replay

import (
	"fmt"
	"slices"
	"sync"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

// maxPartBytes bounds what is kept of letters whose other parts have not come: fifty of
// the largest messages.
const maxPartBytes = 512 << 20

// byHand is how a part leaves the subscription whose letter is published.
const byHand = "acknowledge it by hand (gcloud pubsub subscriptions pull, and ack), or let its retention end"

// parts makes letters whole that were too large for one message.
//
// The message of a whole letter is emitted with the last of its parts to come, and so that
// part is acknowledged once the message is published. The others stay in the subscription
// until the read has ended, as what is left does: should the bundle fail, or the process
// be killed, the next run has all of them. Only a run that has published everything it
// emitted sweeps them out, be it interrupted or not.
type parts struct {
	limit   int64 // of bytes
	mu      sync.Mutex
	waiting map[string]map[int]dlq.Entry // by the letter's id and the part's number
	bytes   int64                        // of those
	letters map[string]*fate             // by the letter's id
	toSweep int                          // messages with parts of published letters
}

// A fate is what became of a letter in parts.
type fate struct {
	whole, published bool
	newer            bool // some part of it was not there when the replay began
	// with is the message that the letter's own is emitted with, and left the others that
	// hold a part of it: a part may have been published twice.
	with string
	left map[string]struct{}
}

func newParts(limit int64) *parts {
	return &parts{limit: limit, waiting: make(map[string]map[int]dlq.Entry), letters: make(map[string]*fate)}
}

// add takes in a part, and returns the letter where it is whole now; else why the part is
// left, or "" where it waits for others, or its letter was whole before.
func (p *parts) add(e dlq.Entry) (letter *dlq.Entry, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := e.Part.ID
	f := p.leaveLocked(id, e.ID)
	if f.whole {
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
	f.whole = true
	return p.joinLocked(e)
}

// leaveLocked takes note of a message that holds a part of the letter with that id.
func (p *parts) leaveLocked(id, message string) *fate {
	f := p.fateLocked(id)
	if _, again := f.left[message]; !again && message != f.with {
		f.left[message] = struct{}{}
		if f.published {
			p.toSweep++
		}
	}
	return f
}

// fateLocked is what is known of a letter.
func (p *parts) fateLocked(id string) *fate {
	f := p.letters[id]
	if f == nil {
		f = &fate{left: make(map[string]struct{})}
		p.letters[id] = f
	}
	return f
}

// joinLocked returns the letter of which e is the last part.
func (p *parts) joinLocked(e dlq.Entry) (letter *dlq.Entry, why string) {
	var all []dlq.Entry
	for _, part := range p.waiting[e.Part.ID] {
		all = append(all, part)
		p.bytes -= int64(len(part.Part.Data))
	}
	delete(p.waiting, e.Part.ID)
	joined, err := dlq.Join(all...)
	if err != nil {
		return nil, err.Error()
	}
	joined.ID = e.ID
	return &joined, ""
}

// published hears that a whole letter's message is emitted, with that message of its parts.
func (p *parts) published(id, with string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.letters[id]
	f.published, f.with = true, with
	delete(f.left, with)
	p.toSweep += len(f.left)
}

// newer hears of a part that was not there when the replay began, and is left for that.
func (p *parts) newer(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fateLocked(id).newer = true
}

// missing calls each with the parts whose letters never became whole; toEnd says that the
// read has seen all that was there.
func (p *parts) missing(toEnd bool, each func(e dlq.Entry, why string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, letter := range p.waiting {
		why := "are not there: another reader may hold them, or an earlier replay has published the letter and this part has stayed; then " + byHand
		switch {
		case p.letters[id].newer:
			why = "were not there when the replay began"
		case !toEnd:
			why = "had not come when it ended"
		}
		for _, e := range letter {
			each(e, fmt.Sprintf("a part of a letter in %d, of which others %s", e.Part.Of, why))
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
	f := p.letters[e.Part.ID]
	if f == nil || !f.published {
		return false
	}
	if _, ok := f.left[e.ID]; ok {
		delete(f.left, e.ID)
		p.toSweep--
	}
	return true
}

// unswept returns how many messages with parts of published letters are still in the
// subscription: all but one of each letter.
func (p *parts) unswept() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.toSweep
}

// unsweptLetters returns the ids of the letters that unswept counts parts of.
func (p *parts) unsweptLetters() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []string
	for id, f := range p.letters {
		if f.published && len(f.left) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
