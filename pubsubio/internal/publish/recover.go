package publish

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// maxCreations is how many topics a pool creates at once: the service's quota for
// such calls is a few hundred a minute for a whole project.
const maxCreations = 8

// jitter is how far a pause of the recovery may be off, in both directions.
const jitter = 0.25

// An incident is one time that a topic is missing: from the first answer that
// says so until a request to it is stored, or the budget is used up.
//
// The requests to the topic take turns. Whoever has the turn creates the topic, if
// nobody has, and publishes its own messages; the others are parked meanwhile, so
// that a topic that comes late is asked for by one request at a time.
type incident struct {
	turn chan struct{} // holds one while a request has the turn
	over chan struct{} // closed at the end

	// Of whoever has the turn.
	created  bool
	presumed bool // created before, which an attempt is to show
	attempts int  // publishes since the creation that found no topic

	err error // set before over is closed: nil where the topic is there
}

// foundLocked ends the incident of a topic that is there.
func (d *publisher) foundLocked() {
	d.failure = nil
	d.closeIncidentLocked(nil)
}

func (d *publisher) closeIncidentLocked(err error) {
	if in := d.incident; in != nil {
		in.err = err
		close(in.over)
		d.incident = nil
		if err != nil {
			d.failures++
			d.failure = err
		}
	}
}

// incidentLocked returns the topic's incident, and opens one, for an answer to an attempt
// that was sent after that many creations. Where there was another since, the answer says
// nothing of the topic as it is now: one more attempt is to show whether it is there.
func (d *publisher) incidentLocked(before int) *incident {
	if d.incident == nil {
		d.incident = &incident{turn: make(chan struct{}, 1), over: make(chan struct{}), presumed: before != d.created}
	}
	return d.incident
}

// found ends the incident that the request has the turn in, before another one
// gets it: the topic is there.
func (r *request) found() {
	if r.leads != nil {
		r.endIncident(nil)
	}
}

// awaitTopic parks a request to a topic that is known to be missing, before it is
// sent for the first time.
func (r *request) awaitTopic() error {
	d := r.publisher()
	d.pool.mu.Lock()
	in := d.incident
	d.pool.mu.Unlock()
	if in == nil {
		return nil
	}
	return r.join(in)
}

// recover deals with the answer that the topic does not exist: it returns when the
// request is to be sent again.
func (r *request) recover() error {
	p, d := r.pool, r.publisher()
	p.mu.Lock()
	p.answeredLocked()
	p.noteLocked(r.batch, r.story)
	if d.incident == nil && d.failure != nil && r.batch.since != d.failures {
		// Opened before the topic was given up: it is part of that incident, though
		// its own answer came later. A new one would ask for the topic once more.
		err := d.failure
		p.mu.Unlock()
		return err
	}
	in := d.incidentLocked(r.created)
	p.mu.Unlock()
	if r.leads == in {
		if !in.presumed {
			in.attempts++ // of those after the creation: this answer is to one
		}
		in.presumed = false
		return r.lead()
	}
	r.stepBack()
	return r.join(in)
}

// join waits until the topic is there, or until it is the request's turn.
func (r *request) join(in *incident) error {
	wake := r.park()
	defer r.unpark()
	select {
	case <-in.over:
		r.batch = r.pool.resume(r.batch)
		return in.err
	case <-wake:
		r.batch = r.pool.resume(r.batch)
		return nil
	case <-r.ctx.Done():
		r.batch = r.pool.resume(r.batch)
		if r.story.last == nil {
			r.story.failed(r.ctx, status.Error(codes.NotFound, "the topic does not exist yet"))
		}
		return r.pool.refusal(r.story, r.pool.budget())
	case in.turn <- struct{}{}:
		r.batch = r.pool.resume(r.batch)
		if r.batch == nil {
			<-in.turn
			return nil
		}
		r.leads = in
		return r.lead()
	}
}

// stepBack gives the turn to another request.
func (r *request) stepBack() {
	if r.leads != nil {
		<-r.leads.turn
		r.leads = nil
	}
}

// lead creates the topic, once for an incident, and pauses before the request is
// sent, within the budget of the recovery.
func (r *request) lead() error {
	in, p := r.leads, r.pool
	select {
	case <-in.over: // by a request that was on the wire before
		r.stepBack()
		return in.err
	default:
	}
	if !in.created && !in.presumed {
		if err := r.createTopic(); err != nil || r.batch == nil {
			return err
		}
		in.created = true
		p.mu.Lock()
		r.publisher().created++
		p.mu.Unlock()
	}
	if in.attempts >= p.opts.RecoveryMaxAttempts {
		err := p.refusal(r.story, fmt.Sprintf("the topic was created; options.Publisher.RecoveryMaxAttempts (%d)", p.opts.RecoveryMaxAttempts))
		r.endIncident(err)
		return err
	}
	pause := p.recoveryPause(in.attempts)
	if err := r.rest(pause, in.over); err != nil {
		return p.refusal(r.story, p.budget())
	}
	return nil
}

// recoveryPause is the pause before a publish after the creation, drawn from
// around its exponential value.
func (p *pool) recoveryPause(attempts int) time.Duration {
	d := p.opts.RecoveryMaxBackoff
	if shift := min(attempts, 30); p.opts.RecoveryInitialBackoff < d>>shift {
		d = p.opts.RecoveryInitialBackoff << shift
	}
	//nolint:gosec // spreads requests, keeps nothing secret
	return time.Duration(float64(d) * (1 + jitter*(2*rand.Float64()-1)))
}

// endIncident ends the incident for all who wait in it.
func (r *request) endIncident(err error) {
	p := r.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := r.publisher(); d.incident == r.leads {
		d.closeIncidentLocked(err)
	}
}

// createTopic creates the topic: with retries, as a publish has them. It fails for
// all who wait for it where the service refuses.
func (r *request) createTopic() error {
	p, d := r.pool, r.publisher()
	story := &trouble{topic: d.topic, began: time.Now()}
	backoff := newBackoff(&p.opts)
	for {
		err := r.createOnce()
		if r.batch == nil {
			return nil
		}
		switch {
		case err == nil:
			p.noteCreation(r.batch)
			return nil
		case status.Code(err) == codes.AlreadyExists:
			return nil
		}
		story.failed(r.ctx, err)
		if transport.Classify(d.ctx, err) != transport.Retryable {
			refused := p.creationRefusal(story)
			r.endIncident(refused)
			return refused
		}
		p.mu.Lock()
		p.noteLocked(r.batch, story)
		p.mu.Unlock()
		pause, ok := backoff.next(r.ctx, p.lastAttempt())
		if !ok || r.rest(pause, r.leads.over) != nil {
			return p.creationRefusal(story)
		}
		if r.batch == nil {
			return nil
		}
	}
}

// createOnce asks the service to create the topic. Nothing is on the wire meanwhile
// that a bundle would have to leave behind.
func (r *request) createOnce() error {
	p, d, ctx := r.pool, r.publisher(), r.ctx
	wake := p.restLocking(r.batch)
	defer func() { r.batch = p.resume(r.batch) }()
	select {
	case p.creating <- struct{}{}:
		defer func() { <-p.creating }()
	case <-wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	if limit := p.rpcTimeout(0); limit != options.Disabled {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return p.create(transport.WithName(ctx, d.topic), d.topic)
}

// noteCreation counts a creation, for a bundle that wanted it.
func (p *pool) noteCreation(t *batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answeredLocked()
	for _, s := range t.shares {
		if s.bundle != nil && !s.bundle.ended {
			s.bundle.counts.TopicsCreated++
			p.stats.TopicsCreated.Add(1)
			return
		}
	}
}

// park counts the batch among those that wait for a topic.
func (r *request) park() <-chan struct{} {
	wake := r.pool.restLocking(r.batch)
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	r.parked = r.batch.messages()
	r.pool.parked += r.parked
	r.pool.stats.Parked.Add(int64(r.parked))
	return wake
}

func (r *request) unpark() {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	r.pool.parked -= r.parked
	r.pool.stats.Parked.Add(-int64(r.parked))
	r.parked = 0
}
