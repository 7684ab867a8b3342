package windowcount

import (
	"iter"
	"slices"
)

// leading returns the first n of what seq has, in order, without sorting the rest: a table
// is drawn five times a second, beside what counts.
func leading[T any](seq iter.Seq[T], n int, compare func(x, y T) int) []T {
	out := make([]T, 0, min(n, 16)+1)
	for v := range seq {
		if n == 0 || len(out) == n && compare(v, out[n-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(out, v, compare)
		if out = slices.Insert(out, at, v); len(out) > n {
			out = out[:n]
		}
	}
	return out
}

// A spanHeap is a heap of windows, the oldest first, for package heap.
type spanHeap []span

func (h spanHeap) Len() int           { return len(h) }
func (h spanHeap) Less(i, j int) bool { return bySpan(h[i], h[j]) < 0 }
func (h spanHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *spanHeap) Push(w any) { *h = append(*h, w.(span)) }

// Pop implements heap.Interface.
func (h *spanHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
