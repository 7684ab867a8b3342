package main

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"time"
)

// A liveTask is a task's part for live.
type liveTask struct {
	Situation situation
	Duration  time.Duration
}

// do runs a program while messages are published, and measures what happens between
// the warm-up and the end of the publishing.
func (l liveTask) do(t task, control *rpc.Client) (liveResult, error) {
	j := liveJob{job{endpoint: t.Server.Endpoint, load: t.Load, settings: t.Contestant.Settings}, l.Situation, new(sightings)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- livePrograms[t.Contestant.Program](ctx, j) }() // Ends with ctx; awaitEnd waits for it.
	call := func(method string, args, reply any) error {
		done := control.Go("Control."+method, args, reply, make(chan *rpc.Call, 1))
		select {
		case <-done.Done:
			return done.Error
		case err := <-ended:
			ended <- nil
			return errors.Join(errors.New("the program has ended by itself"), err)
		}
	}
	r, n, err := l.measure(j, t.Load.Size, call)
	var times Times
	if err == nil {
		err = call("Times", n.total, &times)
	}
	cancel()
	if err := errors.Join(err, awaitEnd(ended)); err != nil {
		return r, err
	}
	r.Emit, r.Ack, err = j.sightings.latencies(n.warm, times)
	return r, err
}

// numbers are how many messages were published.
type numbers struct{ warm, total int }

// measure waits for the program to read, publishes and takes the time. What comes after
// the warm-up counts.
func (l liveTask) measure(j liveJob, size int, call func(string, any, any) error) (r liveResult, n numbers, err error) {
	subscriptions := l.Situation.subscriptions()
	if err := call("Reading", subscriptions, new(struct{})); err != nil {
		return r, n, err
	}
	pace := Pace{Topic: l.Situation.topic(0), Size: size, Rate: l.Situation.Rate, Duration: min(liveWarmup, l.Duration)}
	if err := call("Publish", pace, &n.warm); err != nil {
		return r, n, err
	}
	m, err := startMeter()
	if err != nil {
		return r, n, err
	}
	pace.First, pace.Duration = n.warm, l.Duration
	more := 0
	if err := call("Publish", pace, &more); err != nil {
		return r, n, err
	}
	used, err := m.stop()
	if err != nil {
		return r, n, err
	}
	n.total = n.warm + more
	r.Seconds, r.CPU = used.Seconds, used.CPU
	r.Window = j.sightings.windowsSince(m.start)
	return r, n, call("Settled", subscriptions, new(struct{}))
}

// latencies are those of the messages from number first on.
func (s *sightings) latencies(first int, times Times) (emit, ack quantiles, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var emits, acks []time.Duration
	for i := first; i < len(times.Published); i++ {
		emitted := s.emitted[i]
		if emitted == 0 || times.Acknowledged[i] == 0 {
			return emit, ack, fmt.Errorf("message %d was not emitted, or not acknowledged", i)
		}
		emits = append(emits, time.Duration(emitted-times.Published[i]))
		acks = append(acks, time.Duration(times.Acknowledged[i]-emitted))
	}
	return quantilesOf(emits), quantilesOf(acks), nil
}

// windowsSince tells how long after their ends windows have fired since then.
func (s *sightings) windowsSince(began time.Time) quantiles {
	s.mu.Lock()
	defer s.mu.Unlock()
	var after []time.Duration
	for end, fired := range s.fired {
		if fired.After(began) {
			after = append(after, fired.Sub(end))
		}
	}
	return quantilesOf(after)
}
