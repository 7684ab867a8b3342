package source

import "sync/atomic"

// A gate caps what all readers of one Read hold in their buffers on one worker.
// A stream passes it before it receives, so the cap can be overshot by one
// response of each stream, and no more.
type gate struct {
	maxMessages, maxBytes int64
	messages, bytes       atomic.Int64
	opened                broadcast
}

// add accounts for messages that entered a buffer, or, negative, left one.
func (g *gate) add(messages, bytes int64) {
	if messages == 0 {
		return
	}
	g.messages.Add(messages)
	g.bytes.Add(bytes)
	if messages < 0 {
		g.opened.signal()
	}
}

func (g *gate) isOpen() bool {
	return g.messages.Load() < g.maxMessages && g.bytes.Load() < g.maxBytes
}
