package windowcount

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxCells is how many counts a board keeps: with more, the oldest windows leave it.
// They were published; the table and the plot begin later. A window that has more by
// itself stays, as it does in prism.
const maxCells = 1_000_000

// maxLabels is how many labels a board keeps the totals of: with more, the half that
// counts the least is folded into the others. One that comes back later begins anew.
const maxLabels = 50_000

// A span is a window, from its start to before its end.
type span struct{ start, end time.Time }

// A board is what windows have counted.
type board struct {
	accumulating bool // a window that counts again says all that it has

	mu      sync.Mutex // guards all below
	windows map[span]*counts
	ages    spanHeap // of windows
	cells   int
	totals  map[string]int64 // of labels, of windows that have left, too
	folded  bool             // some labels are in no totals any more
	changed map[span]bool    // since takeChanged
	left    int64            // windows that have left
	newest  span             // of those
	recount bool             // one of them has said again all that it has

	admitted int64 // messages, once for each window they lie in
	counted  int64 // of these
}

// counts are a window's.
type counts struct {
	of    map[string]int64 // labels
	total int64
}

func newBoard(accumulating bool) *board {
	return &board{
		accumulating: accumulating,
		windows:      make(map[span]*counts),
		totals:       make(map[string]int64),
		changed:      make(map[span]bool),
	}
}

// admit tells of a message in a window.
func (b *board) admit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.admitted++
}

// add tells what a window counts of a label.
func (b *board) add(w span, label string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.windows[w]
	if c == nil && b.accumulating && b.left > 0 && bySpan(w, b.newest) <= 0 {
		b.recount = true // What it said before is gone, and with it what this adds.
		return
	}
	if c == nil {
		c = &counts{of: make(map[string]int64)}
		b.windows[w] = c
		heap.Push(&b.ages, w)
	}
	before, known := c.of[label]
	if b.accumulating {
		n -= before
	}
	if !known {
		b.cells++
	}
	c.of[label] = before + n
	c.total += n
	b.totals[label] += n
	b.counted += n
	b.changed[w] = true
	for b.cells > maxCells && len(b.windows) > 1 {
		b.dropOldestLocked()
	}
	if len(b.totals) > maxLabels {
		b.foldLocked()
	}
}

func (b *board) dropOldestLocked() {
	oldest := heap.Pop(&b.ages).(span)
	b.cells -= len(b.windows[oldest].of)
	delete(b.windows, oldest)
	delete(b.changed, oldest)
	b.left++
	b.newest = oldest
}

// foldLocked forgets the half of the labels that counts the least. It sorts them all, but
// only once in half of maxLabels new ones.
func (b *board) foldLocked() {
	for _, label := range slices.SortedFunc(maps.Keys(b.totals), b.byTotalLocked)[maxLabels/2:] {
		delete(b.totals, label)
	}
	b.folded = true
}

// byTotalLocked orders labels: the one that counts the most first.
func (b *board) byTotalLocked(x, y string) int {
	return cmp.Or(cmp.Compare(b.totals[y], b.totals[x]), cmp.Compare(x, y))
}

func bySpan(x, y span) int {
	return cmp.Or(x.start.Compare(y.start), x.end.Compare(y.end))
}

// late is how many messages were not counted, once for each window they lie in, and
// whether that is known. It is true once every window has counted.
func (b *board) late() (n int64, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.admitted - b.counted, !b.recount
}

// A view is a board to be shown: the labels that count the most by name, the rest
// together.
type view struct {
	labels []string // by their totals, the most first
	others bool     // there are more
	rows   []row
	all    row // of all windows
}

// A row is a window.
type row struct {
	span
	counts        []int64 // of the view's labels
	others, total int64
}

// view shows the last windows of b, at most so many, or all if that is negative, and at
// most so many labels by name.
func (b *board) view(last, top int) view {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.viewLocked(b.latestLocked(last), top)
}

// takeChanged shows the windows that have counted since it was called last.
func (b *board) takeChanged(top int) view {
	b.mu.Lock()
	defer b.mu.Unlock()
	spans := slices.SortedFunc(maps.Keys(b.changed), bySpan)
	clear(b.changed)
	return b.viewLocked(spans, top)
}

// latestLocked returns the last windows, at most n, or all if that is negative.
func (b *board) latestLocked(n int) []span {
	if n < 0 {
		return slices.SortedFunc(maps.Keys(b.windows), bySpan)
	}
	spans := leading(maps.Keys(b.windows), n, func(x, y span) int { return bySpan(y, x) })
	slices.Reverse(spans)
	return spans
}

func (b *board) viewLocked(spans []span, top int) view {
	v := view{
		labels: leading(maps.Keys(b.totals), top, b.byTotalLocked),
		others: b.folded || len(b.totals) > top,
	}
	for _, w := range spans {
		c := b.windows[w]
		v.rows = append(v.rows, rowOf(w, c.of, c.total, v.labels))
	}
	v.all = rowOf(span{}, b.totals, b.counted, v.labels)
	return v
}

func rowOf(w span, of map[string]int64, total int64, labels []string) row {
	r := row{span: w, counts: make([]int64, len(labels)), others: total, total: total}
	for i, label := range labels {
		r.counts[i] = of[label]
		r.others -= r.counts[i]
	}
	return r
}

// last returns what the last windows have counted, n at most, and how many have counted
// in all.
func (b *board) last(n int) (windows []windowReport, all int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.latestLocked(n) {
		windows = append(windows, windowReport{Start: instant{w.start}, End: instant{w.end}, Counts: maps.Clone(b.windows[w].of)})
	}
	return windows, int64(len(b.windows)) + b.left
}
