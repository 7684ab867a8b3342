package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A load is what the messages of a run are like, and how they are read. Topics and
// keys take turns: message i goes to topic i modulo Topics, with key i modulo Keys.
type load struct {
	Size    int           // bytes of data
	Topics  int           // at least 1
	Keys    int           // ordering keys; zero means none
	Latency time.Duration // of a publish request
	Splits  int           // of a source, at least 1
	Backlog int           // messages that a source finds, and reads all of; zero: as many as a run moves
}

func (l load) String() string {
	parts := []string{fmt.Sprintf("%d B", l.Size)}
	if l.Topics > 1 {
		parts = append(parts, fmt.Sprintf("%d topics", l.Topics))
	}
	if l.Keys > 0 {
		parts = append(parts, fmt.Sprintf("%d keys", l.Keys))
	}
	if l.Splits > 1 {
		parts = append(parts, fmt.Sprintf("%d splits", l.Splits))
	}
	if l.Backlog > 0 {
		parts = append(parts, fmt.Sprintf("backlog %d", l.Backlog))
	}
	if l.Latency > 0 {
		parts = append(parts, l.Latency.String())
	}
	return strings.Join(parts, ", ")
}

// file is a name for a file.
func (l load) file() string { return strings.NewReplacer(" ", "", ",", "-").Replace(l.String()) }

// shares returns how many of n messages go to each topic.
func (l load) shares(n int) []int64 {
	shares := make([]int64, l.Topics)
	for t := range shares {
		shares[t] = int64((n - t + l.Topics - 1) / l.Topics)
	}
	return shares
}

// cycle is after how many messages the same topic and key come together again.
func (l load) cycle() int {
	keys := max(1, l.Keys)
	return l.Topics / gcd(l.Topics, keys) * keys
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// places is how many places there are in a sequence before they begin again. A
// prime: requests and bundles that change places do not look like none had.
const places = 251

// A deck has what a phase's messages are made of, so that to make one costs
// hardly anything: every program takes its messages from one. The first byte of
// the data is the message's place among those of its topic and key.
type deck struct {
	cycle    int
	topics   []string
	keys     []string // at least one, which is empty where there are none
	payloads [][]byte
}

func (l load) deck(p Phase) *deck {
	d := &deck{cycle: l.cycle(), topics: p.outputTopics(l.Topics), keys: []string{""}, payloads: make([][]byte, places)}
	if l.Keys > 0 {
		d.keys = make([]string, l.Keys)
		for k := range d.keys {
			d.keys[k] = fmt.Sprintf("key-%d", k)
		}
	}
	slab := make([]byte, places*l.Size)
	for i, payload := range slices.Collect(slices.Chunk(slab, l.Size)) {
		payload[0] = byte(i)
		d.payloads[i] = payload
	}
	return d
}

func (d *deck) topic(i int) string { return d.topics[i%len(d.topics)] }

func (d *deck) key(i int) string { return d.keys[i%len(d.keys)] }

func (d *deck) data(i int) []byte { return d.payloads[i/d.cycle%places] }

// An order checks the messages of one topic.
type order struct{ last map[string]byte }

// follows reports whether a message comes after the one before it of its key, or
// is the first that is seen.
func (o *order) follows(key string, data []byte) bool {
	if o.last == nil {
		o.last = make(map[string]byte)
	}
	last, seen := o.last[key]
	o.last[key] = data[0]
	return !seen || int(data[0]) == (int(last)+1)%places
}
