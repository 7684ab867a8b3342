package verify

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// In any order, with copies, near a page's end: the set is the one of a plain map.
func TestSequences_AreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, model := newSequences(), make(map[int64]bool)
		highest := int64(-1)
		n := rapid.IntRange(1, 5*pageSize).Draw(t, "n")
		order := rapid.Permutation(numbers(n)).Draw(t, "order")
		if rapid.Bool().Draw(t, "in order") {
			slices.Sort(order)
		}
		keep := rapid.IntRange(1, 100).Draw(t, "percent that arrive")
		for _, v := range order {
			if int(v*37%100) >= keep {
				continue
			}
			for range rapid.IntRange(1, 2).Draw(t, "times") {
				if s.add(v) == model[v] {
					t.Fatalf("add(%d) when it is there: %v", v, model[v])
				}
				model[v], highest = true, max(highest, v)
			}
		}
		if s.count != int64(len(model)) || s.highest != highest {
			t.Fatalf("count %d, highest %d; want %d, %d", s.count, s.highest, len(model), highest)
		}
		var want, got []int64
		for v := range int64(n + 3) {
			if s.has(v) != model[v] {
				t.Fatalf("has(%d): %v", v, s.has(v))
			}
			if !model[v] {
				want = append(want, v)
			}
		}
		s.absent(int64(n+3), func(v int64) bool { got = append(got, v); return true })
		if !slices.Equal(got, want) {
			t.Fatalf("absent %v, want %v", got, want)
		}
	})
}

func numbers(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

// A hundred million in order are a number; the most that a damaged message can say is a
// page.
func TestSequences_StayBounded(t *testing.T) {
	s := newSequences()
	for i := range int64(200 * pageSize) {
		s.add(i)
	}
	if len(s.pages) != 0 || s.base != 200*pageSize {
		t.Errorf("%d pages from %d on", len(s.pages), s.base)
	}
	if !s.add(math.MaxInt64) || s.add(math.MaxInt64) || len(s.pages) != 1 {
		t.Errorf("%d pages", len(s.pages))
	}
	s = newSequences()
	for i := range int64(200 * pageSize) {
		if i != 3 { // lost
			s.add(i)
		}
	}
	shared := 0
	for _, p := range s.pages {
		if p == full {
			shared++
		}
	}
	if len(s.pages) != 200 || shared != 199 {
		t.Errorf("behind a gap: %d pages, %d of them shared", len(s.pages), shared)
	}
	if !s.add(3) || len(s.pages) != 0 {
		t.Errorf("the gap is closed: %d pages", len(s.pages))
	}
}
