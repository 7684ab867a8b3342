package main

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// prepare makes what a situation needs.
func (s situation) prepare(srv *pubsubtest.Server) error {
	for i := range s.Subscriptions {
		err := errors.Join(srv.CreateTopic(s.topic(i)), srv.CreateSubscription(s.subscription(i), s.topic(i)))
		if err != nil {
			return err
		}
	}
	return nil
}

// A Pace is how messages are published: their numbers begin at First.
type Pace struct {
	Topic    string
	First    int
	Size     int
	Rate     int // a second
	Duration time.Duration
}

// Publish publishes at a pace and returns how many messages, at the end of its
// duration.
func (c *Control) Publish(p Pace, published *int) error {
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for at := range tick.C {
		elapsed := min(at.Sub(began), p.Duration)
		for due := int(elapsed.Seconds() * float64(p.Rate)); *published < due; *published++ {
			if _, err := c.srv.Publish(p.Topic, numbered(p.First+*published, p.Size)); err != nil {
				return err
			}
		}
		if elapsed == p.Duration {
			break
		}
	}
	return nil
}

// numberBytes is how much of a message's data is its number.
const numberBytes = 8

func numbered(n, size int) *message.Message {
	data := make([]byte, max(size, numberBytes))
	binary.BigEndian.PutUint64(data, uint64(n))
	return &message.Message{Data: data}
}

func numberOf(data []byte) int { return int(binary.BigEndian.Uint64(data)) }

// Reading returns once every subscription has a stream.
func (c *Control) Reading(subscriptions []string, _ *struct{}) error {
	return c.awaitAll(subscriptions, func(s pubsubtest.Stats) bool { return s.Streams > 0 })
}

// Settled returns once everything that was published is acknowledged.
func (c *Control) Settled(subscriptions []string, _ *struct{}) error {
	return c.awaitAll(subscriptions, func(s pubsubtest.Stats) bool { return s.Acknowledged == s.Published })
}

func (c *Control) awaitAll(subscriptions []string, ok func(pubsubtest.Stats) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), progressTimeout)
	defer cancel()
	for _, name := range subscriptions {
		if err := c.srv.Await(ctx, name, ok); err != nil {
			return err
		}
	}
	return nil
}

// Times are when the server saw messages, by their numbers, as Unix nanoseconds: what
// never happened has zero.
type Times struct{ Published, Acknowledged []int64 }

// Times returns those of n messages.
func (c *Control) Times(n int, times *Times) error { //nolint:unparam // the form that net/rpc asks for
	times.Published, times.Acknowledged = make([]int64, n), make([]int64, n)
	for e := range slices.Values(c.srv.Events()) {
		var of []int64
		switch e.Kind { //nolint:exhaustive // the others are of no interest
		case pubsubtest.Publish:
			of = times.Published
		case pubsubtest.Acknowledge:
			of = times.Acknowledged
		}
		if of == nil {
			continue
		}
		if i := numberOf(e.Message().Data); of[i] == 0 {
			of[i] = e.Time.UnixNano()
		}
	}
	return nil
}
