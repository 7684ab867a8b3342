package publish

import (
	"runtime"
	"testing"
)

// used is a payload of that many bytes, given back.
func used(s *payloads, size int) {
	p := s.get()
	p.buf = append(p.buf, make([]byte, size)...)
	p.release()
}

// A sync.Pool was emptied by every second collection, and the buffers after it
// grew by doubling, each byte copied and twice the size left behind.
func TestPayloads_ACollectionCostsNoBuffer(t *testing.T) {
	s := newPayloads(1_000_000)
	p := s.get()
	p.buf = append(p.buf, make([]byte, 100_000)...)
	first := &p.buf[0]
	p.release()
	for range 3 {
		runtime.GC()
	}
	if p := s.get(); &p.buf[:1][0] != first {
		t.Error("the buffer was not used again")
	}
}

func TestPayloads_ANewBufferIsAsLargeAsTheLatestRequests(t *testing.T) {
	s := newPayloads(1_000_000)
	used(s, 100_000)
	_, second := s.get(), s.get()
	if c := cap(second.buf); c < 100_000 || c > 200_000 {
		t.Errorf("a new buffer beside requests of 100,000 bytes has %d", c)
	}
	for range 200 {
		used(s, 1000)
	}
	for range len(s.free) + 1 {
		second = s.get()
	}
	if c := cap(second.buf); c != minPayload {
		t.Errorf("a new buffer beside requests of 1,000 bytes has %d", c)
	}
}

func TestPayloads_KeepsNoMoreThanItMay(t *testing.T) {
	s := newPayloads(1_000_000)
	used(s, 9_000_000)
	if len(s.free) != 0 {
		t.Error("the buffer of one huge message was kept")
	}
	after := s.get()
	if cap(after.buf) > s.keep {
		t.Errorf("the request after a huge one has a buffer of %d bytes", cap(after.buf))
	}
	after.release()
	var many []*payload
	for range 100 {
		p := s.get()
		p.buf = append(p.buf, make([]byte, 1_000_000)...)
		many = append(many, p)
	}
	for _, p := range many {
		p.release()
	}
	held := func() (bytes int) {
		for _, p := range s.free {
			bytes += cap(p.buf)
		}
		if bytes != s.bytes || s.used != 0 {
			t.Errorf("%d bytes are kept, counted as %d; %d counted as used", bytes, s.bytes, s.used)
		}
		return bytes
	}
	if got := held(); got > s.peak || got < s.peak/2 {
		t.Errorf("%d bytes are kept after a use of %d", got, s.peak)
	}
	// A pool that needs less keeps less, in the end.
	for range 20 * peakDecay {
		used(s, 1000)
	}
	for len(s.free) > 0 {
		many = append(many, s.get())
	}
	for _, p := range many[100:] {
		p.release()
	}
	if got := held(); got > leastFree {
		t.Errorf("%d bytes are kept long after", got)
	}
}
