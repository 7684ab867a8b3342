package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/window"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/transforms/stats"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() {
	register.DoFn2x1[*message.Message, func([]byte), error](&seeFn{})
	register.DoFn3x1[beam.Window, string, int, error](&fireFn{})
	register.Function1x1(oneKey)
}

// A liveJob is a job in a situation.
type liveJob struct {
	job
	situation situation
	sightings *sightings
}

// livePrograms are those of live. They end with ctx.
var livePrograms = map[string]func(context.Context, liveJob) error{ours: seeOurs, peer: seeClient}

// sightings are when a program saw messages and windows.
type sightings struct {
	mu      sync.Mutex // guards all below
	emitted map[int]int64
	fired   map[time.Time]time.Time // by the window's end
}

// see notes a message, the first time.
func (s *sightings) see(data []byte) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.emitted == nil {
		s.emitted = make(map[int]int64)
	}
	if n := numberOf(data); s.emitted[n] == 0 {
		s.emitted[n] = now.UnixNano()
	}
}

// fire notes a window, the first time.
func (s *sightings) fire(end time.Time) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fired == nil {
		s.fired = make(map[time.Time]time.Time)
	}
	if s.fired[end].IsZero() {
		s.fired[end] = now
	}
}

// sightingsHere are those of this process's one pipeline: a DoFn is made anew from
// what travels, and finds them here.
var sightingsHere struct {
	sync.Mutex
	*sightings
}

func theSightings() (*sightings, error) {
	sightingsHere.Lock()
	defer sightingsHere.Unlock()
	if sightingsHere.sightings == nil {
		return nil, fmt.Errorf("no pipeline of live in this process")
	}
	return sightingsHere.sightings, nil
}

// seeOurs reads into what notes each message, or counts them by windows as well.
func seeOurs(ctx context.Context, j liveJob) error {
	sightingsHere.Lock()
	sightingsHere.sightings = j.sightings
	sightingsHere.Unlock()
	in, _, err := j.settings.ours()
	if err != nil {
		return err
	}
	in.Subscriptions, in.EmulatorEndpoint = j.situation.sources(), j.endpoint
	p, s := beam.NewPipelineWithRoot()
	messages := source.Read(s, in, source.Message)
	beam.ParDo0(s, discard, beam.Reshuffle(s, beam.ParDo(s, &seeFn{}, messages)))
	if j.situation.Windows {
		windowed := beam.WindowInto(s, window.NewFixedWindows(windowSize), messages)
		beam.ParDo0(s, &fireFn{}, stats.Count(s, beam.ParDo(s, oneKey, windowed)))
	}
	return pubsubio.Run(ctx, p)
}

// seeFn notes messages. Its output is kept, as that of count is.
type seeFn struct{ to *sightings }

// Setup finds where to note them.
func (fn *seeFn) Setup() (err error) {
	fn.to, err = theSightings()
	return err
}

// ProcessElement notes one.
func (fn *seeFn) ProcessElement(m *message.Message, _ func([]byte)) error {
	fn.to.see(m.Data)
	return nil
}

// fireFn notes the windows that fire.
type fireFn struct{ to *sightings }

// Setup finds where to note them.
func (fn *fireFn) Setup() (err error) {
	fn.to, err = theSightings()
	return err
}

// ProcessElement notes one.
func (fn *fireFn) ProcessElement(w beam.Window, _ string, _ int) error {
	fn.to.fire(w.MaxTimestamp().ToTime().Add(time.Millisecond))
	return nil
}

// oneKey counts all messages together.
func oneKey(*message.Message) string { return "all" }

// seeClient notes each message and acknowledges it.
func seeClient(ctx context.Context, j liveJob) error {
	settings, err := j.settings.client(j.load)
	if err != nil {
		return err
	}
	c, err := newClient(ctx, j.endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is under way
	return settings.receive(ctx, c, j.situation.subscription(0), func(_ context.Context, m *pubsub.Message) {
		j.sightings.see(m.Data)
		m.Ack()
	})
}
