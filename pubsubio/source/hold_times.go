package source

import (
	"math"
	"time"
)

const (
	// firstPeriod is what is taken for a lease while nothing is known.
	firstPeriod = time.Minute
	// holdsKnown is how many messages must have been seen for their hold times to
	// say anything.
	holdsKnown = 100
	// holdsKept is how many are remembered; with more, all count half.
	holdsKept = 1 << 16

	holdBase   = 250 * time.Millisecond // the bound of the first bucket
	holdGrowth = 1.25                   // from each bucket's bound to the next
)

// holdTimes learns how long messages are held from their receipt to their
// acknowledgement: a histogram whose older part counts ever less.
type holdTimes struct {
	buckets [36]int // the last one's bound is beyond the longest lease
	total   int
}

// add takes in n messages under a lease that are acknowledged now.
func (t *holdTimes) add(l *lease, n int, now time.Time) {
	if l == nil || n == 0 {
		return
	}
	t.buckets[holdBucket(now.Sub(l.received))] += n
	if t.total += n; t.total < holdsKept {
		return
	}
	t.total = 0
	for i := range t.buckets {
		t.buckets[i] /= 2
		t.total += t.buckets[i]
	}
}

// slowest returns the time within which 99 of 100 messages were acknowledged, to
// the bound of its bucket; half of firstPeriod while too little is known.
func (t *holdTimes) slowest() time.Duration {
	if t.total < holdsKnown {
		return firstPeriod / 2
	}
	slower := t.total / 100 // as many may be
	i := len(t.buckets) - 1
	for ; i > 0 && t.buckets[i] <= slower; i-- {
		slower -= t.buckets[i]
	}
	return holdBound(i)
}

func holdBucket(d time.Duration) int {
	if d <= holdBase {
		return 0
	}
	i := int(math.Ceil(math.Log(float64(d)/float64(holdBase)) / math.Log(holdGrowth)))
	return min(i, len(holdTimes{}.buckets)-1)
}

func holdBound(bucket int) time.Duration {
	return time.Duration(float64(holdBase) * math.Pow(holdGrowth, float64(bucket)))
}
