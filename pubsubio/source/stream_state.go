package source

import (
	"time"

	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

const (
	// forsakenAfter is how long a stream may be down before the others bring all
	// that there is: what the service had leased to it has lapsed, as no lease is
	// longer.
	forsakenAfter = 10 * time.Minute
	// warnEvery is how often trouble with the streams of a reader is reported.
	warnEvery = time.Minute
)

// The state of a stream as the reader's watermark sees it.
type streamState uint8

const (
	streamDown     streamState = iota // a message may be leased to it that nobody has
	streamOpen                        // what comes to it is seen
	streamForsaken                    // it has been down for forsakenAfter
)

// streamWorks hears that a stream is open. One that was refused before is believed
// only when it has brought something or lasted, or a refusal at each try would look
// like an open stream for a moment.
func (r *reader) streamWorks(s *stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setStateLocked(s, streamOpen)
}

// streamBrings hears that something has come on a stream: the service knows the
// subscription.
func (r *reader) streamBrings(s *stream) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known.IsZero() {
		r.known = now
	}
	r.setStateLocked(s, streamOpen)
}

// streamEnds hears that a stream is no longer open.
func (r *reader) streamEnds(s *stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.state == streamOpen {
		r.setStateLocked(s, streamDown)
	}
}

// streamFails hears that a stream has not worked for that long, and warns, once a
// minute at most however many streams there are. A single failure is routine; a
// stream is opened again in a second.
func (r *reader) streamFails(s *stream, err error, lasting time.Duration) {
	r.counts.Errors.Add(status.Code(err))
	now := time.Now()
	r.mu.Lock()
	if lasting >= forsakenAfter && s.state == streamDown {
		r.setStateLocked(s, streamForsaken)
	}
	open := r.openLocked()
	silent := lasting < 2*reopenMin || !r.warned.IsZero() && now.Sub(r.warned) < warnEvery
	if !silent {
		r.warned = now
	}
	r.mu.Unlock()
	if silent {
		return
	}
	text := "nothing can be received; trying again"
	if open > 0 {
		text = "a stream cannot be opened; trying again while the others go on"
	}
	warn(text, "subscription", r.subscription, "open", open, "of", len(r.streams), "for", lasting.Round(time.Second), "status", transport.Describe(err))
}

func (r *reader) setStateLocked(s *stream, state streamState) {
	before := r.openLocked()
	s.state = state
	open, down := r.openLocked(), false
	r.counts.OpenStreams.Add(int64(open - before))
	for _, s := range r.streams {
		down = down || s.state == streamDown
	}
	switch {
	case open == 0 || down:
		r.wm.opened = time.Time{}
	case r.wm.opened.IsZero():
		r.wm.opened = time.Now()
	}
}

// openLocked returns how many streams are open.
func (r *reader) openLocked() int {
	n := 0
	for _, s := range r.streams {
		if s.state == streamOpen {
			n++
		}
	}
	return n
}

// knownFor returns for how long the service has known the subscription; zero where
// it never did.
func (r *reader) knownFor() time.Duration {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known.IsZero() {
		return 0
	}
	return now.Sub(r.known)
}
