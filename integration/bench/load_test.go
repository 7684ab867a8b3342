package main

import (
	"slices"
	"testing"
)

func TestLoad_SharesAreWhatADeckDeals(t *testing.T) {
	for _, l := range []load{{Size: 1, Topics: 1}, {Size: 1, Topics: 3}, {Size: 1, Topics: 7, Keys: 2}} {
		for n := range 20 {
			d := l.deck(measured)
			counts := make([]int64, l.Topics)
			for i := range n {
				counts[slices.Index(d.topics, d.topic(i))]++
			}
			if got := l.shares(n); !slices.Equal(got, counts) {
				t.Errorf("%v, %d messages: %v, a deck deals %v", l, n, got, counts)
			}
		}
	}
}

// What is in the order of a deck passes, over the end of the places; every
// exchange of neighbours, loss or repetition within a key does not.
func TestOrder_FollowsADeck(t *testing.T) {
	l := load{Size: 3, Topics: 2, Keys: 6}
	d := l.deck(measured)
	disorder := func(messages []int) (n int) {
		orders := make(map[string]*order)
		for _, i := range messages {
			o := orders[d.topic(i)]
			if o == nil {
				o = new(order)
				orders[d.topic(i)] = o
			}
			if !o.follows(d.key(i), d.data(i)) {
				n++
			}
		}
		return n
	}
	all := make([]int, 3*places*l.cycle())
	for i := range all {
		all[i] = i
	}
	if n := disorder(all); n != 0 {
		t.Errorf("%d of a deck out of order", n)
	}
	exchanged := slices.Clone(all)
	exchanged[10], exchanged[10+l.cycle()] = exchanged[10+l.cycle()], exchanged[10]
	if disorder(exchanged) == 0 {
		t.Error("an exchange within a key was not seen")
	}
	otherKeys := slices.Clone(all)
	otherKeys[10], otherKeys[11] = otherKeys[11], otherKeys[10]
	if n := disorder(otherKeys); n != 0 {
		t.Errorf("%d out of order where two keys changed places", n)
	}
	if disorder(slices.Delete(slices.Clone(all), 20, 21)) == 0 {
		t.Error("a loss was not seen")
	}
	if disorder(slices.Insert(slices.Clone(all), 20, 20)) == 0 {
		t.Error("a repetition was not seen")
	}
}
