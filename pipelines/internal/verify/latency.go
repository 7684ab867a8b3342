package verify

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// subBuckets is how many buckets there are between a power of two and the next: what
// is read out of them is right to one part in 64.
const subBuckets = 64

// latencies counts durations in buckets whose width grows with them: as many as there
// are, they take 30 KB. Percentiles are right to 1.6 %, the most is exact.
type latencies struct {
	buckets [(64 - 6) * subBuckets]int64
	coarse  [len(bounds) + 1]int64 // by bounds, for people
	count   int64
	most    time.Duration
}

// bounds are where the rows of a histogram begin and end: 1, 2, 5, 10 and so on, from
// a microsecond to 5,000 seconds.
var bounds = func() (out [30]time.Duration) {
	at := time.Microsecond
	for i := range out {
		out[i] = at
		if i%3 == 1 { // 2 → 5
			at = at / 2 * 5
		} else {
			at *= 2
		}
	}
	return out
}()

// add counts d; a negative one, of clocks that disagree, as nothing.
func (l *latencies) add(d time.Duration) {
	d = max(d, 0)
	l.buckets[bucketOf(d)]++
	i, _ := slices.BinarySearchFunc(bounds[:], d, func(bound, d time.Duration) int {
		if bound <= d {
			return -1
		}
		return 1
	})
	l.coarse[i]++
	l.count++
	l.most = max(l.most, d)
}

// bucketOf returns the bucket of d. The first 64 hold a nanosecond each; from there on
// each power of two is cut into 64.
func bucketOf(d time.Duration) int {
	v := uint64(d)
	if v < subBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - 7
	return (shift+1)*subBuckets + int(v>>shift) - subBuckets
}

// upperEnd returns the least duration above bucket i.
func upperEnd(i int) time.Duration {
	if i < subBuckets {
		return time.Duration(i + 1)
	}
	shift := i/subBuckets - 1
	return time.Duration(min(uint64(i%subBuckets+subBuckets+1)<<shift, math.MaxInt64))
}

// percentile returns the duration that p of 100 do not exceed, zero where there are
// none.
func (l *latencies) percentile(p float64) time.Duration {
	if l.count == 0 {
		return 0
	}
	rank := max(int64(math.Ceil(float64(l.count)*p/100)), 1)
	for i, n := range l.buckets {
		if rank -= n; rank <= 0 {
			return min(upperEnd(i), l.most)
		}
	}
	return l.most
}

// A bar is a row of a histogram: how many durations lie between two.
type bar struct {
	From, To time.Duration
	Count    int64
}

// bars returns the rows from the first with something in it to the last.
func (l *latencies) bars() []bar {
	var out []bar
	for i, n := range l.coarse {
		if n == 0 && len(out) == 0 {
			continue
		}
		out = append(out, bar{From: boundBelow(i), To: boundAbove(i), Count: n})
	}
	for len(out) > 0 && out[len(out)-1].Count == 0 {
		out = out[:len(out)-1]
	}
	return out
}

func boundBelow(i int) time.Duration {
	if i == 0 {
		return 0
	}
	return bounds[i-1]
}

func boundAbove(i int) time.Duration {
	if i == len(bounds) {
		return math.MaxInt64
	}
	return bounds[i]
}
