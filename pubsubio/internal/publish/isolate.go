package publish

// The service refuses a request whole, and its answer names no message: one bad
// message would take up to 999 good ones with it. So a refused request is a
// candidate only. It is cut in halves, which are published for themselves, until
// what is refused is one message alone. For k bad messages of n that costs about
// 2·k·log2(n) requests.

// isolate publishes the halves of a request that was refused for something in it:
// both at once where there is no order, one after the other on an ordering key.
// Both keep the room that their messages have.
func (p *pool) isolate(t *batch, story *trouble) {
	left, right := p.halve(t, story)
	switch {
	case left == nil || right == nil:
		p.publishIf(left)
		p.publishIf(right)
	case left.lane.key == "":
		p.requests.Add(1)
		go p.deliver(right)
		p.publish(left)
	default:
		p.publish(left)
		p.publishIf(p.living(right))
	}
}

func (p *pool) publishIf(t *batch) {
	if t != nil {
		p.publish(t)
	}
}

// halve cuts t in two, without what is not wanted any more. A half is nil where
// nothing is left of it.
func (p *pool) halve(t *batch, story *trouble) (left, right *batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answeredLocked()
	t.countFailureLocked(story)
	n := t.messages()
	left, right = p.cutLocked(t, 0, n/2), p.cutLocked(t, n/2, n)
	sent := t.sent + story.attempts
	if left != nil {
		left.state, left.sent = onWire, sent
	}
	if right != nil {
		right.state, right.sent = onWire, sent
		if t.lane.key != "" && left != nil {
			right.state = resting // behind the other half
		}
	}
	p.replaceLocked(t, left, right)
	return left, right
}

// living returns t, or where some of its messages are not wanted any more a batch
// of the others, or nil. In a key's line this keeps what comes after a failure of
// the same bundle from the wire.
func (p *pool) living(t *batch) *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.livingLocked(t)
}

func (p *pool) livingLocked(t *batch) *batch {
	t.state = onWire
	if !t.deadLocked() {
		return t
	}
	rest := p.cutLocked(t, 0, t.messages())
	if rest != nil {
		rest.state, rest.sent = onWire, t.sent
	}
	p.replaceLocked(t, rest)
	return rest
}
