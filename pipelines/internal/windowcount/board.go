package windowcount

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxCells is how many counts a board keeps: with more, the oldest windows leave it.
// They were published; the table and the plot begin later.
const maxCells = 1_000_000

// A span is a window, from its start to before its end.
type span struct{ start, end time.Time }

// A board is what windows have counted.
type board struct {
	accumulating bool // a window that counts again says all that it has

	mu      sync.Mutex // guards all below
	windows map[span]map[string]int64
	cells   int
	totals  map[string]int64 // of each label, of windows that have left, too
	changed map[span]bool    // since takeChanged
	left    int64            // windows that have left

	admitted int64 // messages, once for each window they lie in
	counted  int64 // of these
}

func newBoard(accumulating bool) *board {
	return &board{
		accumulating: accumulating,
		windows:      make(map[span]map[string]int64),
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
	counts := b.windows[w]
	if counts == nil {
		counts = make(map[string]int64)
		b.windows[w] = counts
	}
	before, known := counts[label]
	if b.accumulating {
		n -= before
	}
	if !known {
		b.cells++
	}
	counts[label] = before + n
	b.totals[label] += n
	b.counted += n
	b.changed[w] = true
	for b.cells > maxCells && len(b.windows) > 1 {
		b.dropOldestLocked()
	}
}

func (b *board) dropOldestLocked() {
	oldest := slices.MinFunc(slices.Collect(maps.Keys(b.windows)), bySpan)
	b.cells -= len(b.windows[oldest])
	delete(b.windows, oldest)
	delete(b.changed, oldest)
	b.left++
}

func bySpan(x, y span) int {
	return cmp.Or(x.start.Compare(y.start), x.end.Compare(y.end))
}

// late is how many messages were not counted, once for each window they lie in. It is
// true once every window has counted.
func (b *board) late() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.admitted - b.counted
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
	return b.viewLocked(slices.SortedFunc(maps.Keys(b.windows), bySpan), last, top)
}

// takeChanged shows the windows that have counted since it was called last.
func (b *board) takeChanged(top int) view {
	b.mu.Lock()
	defer b.mu.Unlock()
	spans := slices.SortedFunc(maps.Keys(b.changed), bySpan)
	clear(b.changed)
	return b.viewLocked(spans, -1, top)
}

func (b *board) viewLocked(spans []span, last, top int) view {
	labels := slices.SortedFunc(maps.Keys(b.totals), func(x, y string) int {
		return cmp.Or(cmp.Compare(b.totals[y], b.totals[x]), cmp.Compare(x, y))
	})
	v := view{others: len(labels) > top}
	v.labels = labels[:min(top, len(labels))]
	if last >= 0 && len(spans) > last {
		spans = spans[len(spans)-last:]
	}
	for _, w := range spans {
		v.rows = append(v.rows, rowOf(w, b.windows[w], v.labels))
	}
	v.all = rowOf(span{}, b.totals, v.labels)
	return v
}

func rowOf(w span, counts map[string]int64, labels []string) row {
	r := row{span: w, counts: make([]int64, len(labels))}
	for _, n := range counts {
		r.total += n
	}
	r.others = r.total
	for i, label := range labels {
		r.counts[i] = counts[label]
		r.others -= r.counts[i]
	}
	return r
}

// last returns what the last windows have counted, n at most, and how many have counted
// in all.
func (b *board) last(n int) (windows []windowReport, all int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	spans := slices.SortedFunc(maps.Keys(b.windows), bySpan)
	for _, w := range spans[max(len(spans)-n, 0):] {
		windows = append(windows, windowReport{Start: instant{w.start}, End: instant{w.end}, Counts: maps.Clone(b.windows[w])})
	}
	return windows, int64(len(spans)) + b.left
}
