package source

import (
	"slices"
	"time"
)

// A fifo holds what a reader has received and not yet emitted, in the order of
// receipt. The reader's mutex guards it. Whoever fills it asks the buffer gate
// of the read first: the fifo itself has no bound.
type fifo struct {
	chunks   []*chunk
	messages int
	bytes    int64
}

// A chunk is what came in one response.
type chunk struct {
	items    []*held // in order; those that are gone stay until their turn
	received time.Time
	oldest   time.Time // the earliest event time among items that holds the watermark; zero for none
}

// push adds items, the earliest of which that holds the watermark has that event time.
func (f *fifo) push(items []*held, oldest, now time.Time) {
	c := &chunk{items: items, received: now, oldest: oldest}
	for _, h := range items {
		f.messages++
		f.bytes += h.size
	}
	f.chunks = append(f.chunks, c)
}

// pop removes up to n messages of together up to size bytes, but at least one
// if there is any, and appends them to dst. A message whose lease has lapsed
// comes back in lapsed instead: the service sends it again. Where order is kept,
// nothing behind it is taken.
func (f *fifo) pop(dst []*held, n int, size int64, ordered bool, now time.Time) (taken, lapsed []*held) {
	taken = dst
	var bytes int64
	for len(f.chunks) > 0 {
		c := f.chunks[0]
		for i, h := range c.items {
			if h.state != buffered {
				continue
			}
			if h.lapsed(now) {
				f.drop(h)
				lapsed = append(lapsed, h)
				if ordered {
					return taken, lapsed
				}
				continue
			}
			if len(taken)-len(dst) >= n || len(taken) > len(dst) && bytes+h.size > size {
				c.items = c.items[i:]
				return taken, lapsed
			}
			bytes += h.size
			f.drop(h)
			taken = append(taken, h)
		}
		f.chunks[0] = nil
		f.chunks = f.chunks[1:]
	}
	f.chunks = nil
	return taken, lapsed
}

// judge has hold say again for each chunk from when on it holds the watermark.
func (f *fifo) judge(hold func([]*held) time.Time) {
	for _, c := range f.chunks {
		c.oldest = hold(slices.DeleteFunc(slices.Clone(c.items), func(h *held) bool { return h.state != buffered }))
	}
}

// drop takes h out of the account; its place in the chunk is passed over when
// its turn comes, because its state is no longer buffered.
func (f *fifo) drop(h *held) {
	f.messages--
	f.bytes -= h.size
	h.state = gone
}

// clear empties the fifo and returns what was in it.
func (f *fifo) clear() []*held {
	var items []*held
	for _, c := range f.chunks {
		for _, h := range c.items {
			if h.state == buffered {
				f.drop(h)
				items = append(items, h)
			}
		}
	}
	f.chunks = nil
	return items
}

// oldest returns the earliest event time of what was received since the given
// time and is still buffered; zero where there is none.
func (f *fifo) oldest(since time.Time) time.Time {
	var oldest time.Time
	for _, c := range f.chunks {
		if !c.received.Before(since) {
			oldest = earlier(oldest, c.oldest)
		}
	}
	return oldest
}
