package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// A situation is what goes on while a program of live reads.
type situation struct {
	Name          string
	Rate          int // messages a second; zero publishes none
	Subscriptions int // the messages go to the first
	Windows       bool
	// Programs are those that can be in it.
	Programs []string
}

var situations = []situation{
	{Name: "1,000/s", Rate: 1000, Subscriptions: 1, Programs: []string{ours, peer}},
	{Name: "idle", Subscriptions: 1, Programs: []string{ours, peer}},
	{Name: "12 idle", Subscriptions: 12, Programs: []string{ours}},
	{Name: "windows", Rate: 10, Subscriptions: 1, Windows: true, Programs: []string{ours}},
}

const (
	// liveDuration is how long a situation is measured, but where --duration says.
	liveDuration = 10 * time.Second
	// liveWarmup is how long it lasts before.
	liveWarmup = 2 * time.Second
	// windowSize is that of the windows that messages are counted by.
	windowSize = time.Second
)

// subscription returns the name of one of them.
func (s situation) subscription(i int) string {
	return fmt.Sprintf("%s-%d", measured.subscription(), i)
}

func (s situation) topic(i int) string { return fmt.Sprintf("%s-%d", measured.inputTopic(), i) }

func (s situation) subscriptions() []string {
	names := make([]string, s.Subscriptions)
	for i := range names {
		names[i] = s.subscription(i)
	}
	return names
}

// sources returns them as source.Config has them.
func (s situation) sources() []source.Subscription { return source.From(s.subscriptions()...) }

// A liveSeries is what one contestant did in one situation.
type liveSeries struct {
	contestant
	Situation situation
	Size      int
	Runs      []liveResult
}

// A liveResult is what was measured in one run.
type liveResult struct {
	Seconds float64
	CPU     float64   // seconds
	Emit    quantiles // from a message's publish until it is emitted
	Ack     quantiles // from there until it is acknowledged
	Window  quantiles // from a window's end until it fires
}

// quantiles tell of times, in milliseconds.
type quantiles struct {
	N             int
	P50, P99, Max float64
}

func quantilesOf(all []time.Duration) quantiles {
	if len(all) == 0 {
		return quantiles{}
	}
	slices.Sort(all)
	at := func(share float64) float64 { return 1e3 * all[int(share*float64(len(all)-1))].Seconds() }
	return quantiles{N: len(all), P50: at(0.5), P99: at(0.99), Max: at(1)}
}
