package verify

import "math/bits"

// pageSize is how many numbers a page has a bit for.
const pageSize = 512

type page [pageSize / 64]uint64

// full stands for a page with every bit set: what is behind a gap costs a pointer for
// each 512 numbers.
var full = new(page)

// sequences is the set of the numbers of a key that have arrived, a bit each at most.
// What arrives in order is one number, base, whatever there is of it.
type sequences struct {
	base    int64           // every number below it is in the set; whole pages
	pages   map[int64]*page // from base on, by number / pageSize; nil until needed
	count   int64
	highest int64 // in the set, -1 if empty
}

func newSequences() *sequences { return &sequences{highest: -1} }

// add puts n, which is not negative, into the set and reports whether it was not in it.
func (s *sequences) add(n int64) bool {
	if s.has(n) {
		return false
	}
	if s.pages == nil {
		s.pages = make(map[int64]*page)
	}
	at := n / pageSize
	p := s.pages[at]
	if p == nil {
		p = new(page)
		s.pages[at] = p
	}
	p[n%pageSize/64] |= 1 << (n % 64)
	s.count++
	s.highest = max(s.highest, n)
	if p.isFull() {
		s.pages[at] = full
		for ; s.pages[s.base/pageSize] == full; s.base += pageSize {
			delete(s.pages, s.base/pageSize)
		}
	}
	return true
}

func (s *sequences) has(n int64) bool {
	if n < s.base {
		return true
	}
	p := s.pages[n/pageSize]
	return p == full || p != nil && p[n%pageSize/64]&(1<<(n%64)) != 0
}

func (p *page) isFull() bool {
	ones := 0
	for _, word := range p {
		ones += bits.OnesCount64(word)
	}
	return ones == pageSize
}

// absent calls yield for each number below end that is not in the set, in their order,
// until it returns false.
func (s *sequences) absent(end int64, yield func(n int64) bool) {
	for n := s.base; n < end; n++ {
		if n%pageSize == 0 && s.pages[n/pageSize] == full {
			n += pageSize - 1
			continue
		}
		if !s.has(n) && !yield(n) {
			return
		}
	}
}
