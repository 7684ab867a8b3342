package publish

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// trouble is the story of a request whose attempts fail.
type trouble struct {
	topic    string
	attempts int
	began    time.Time // of the first attempt
	first    time.Time // failure
	last     error     // status
	noted    bool      // the last one is counted
	warned   int       // parts of PublishProgressTimeout that were warned of
}

// failed notes an attempt that ended in err. One that the request's own budget
// cut off says less than the status before it, which is then kept.
func (t *trouble) failed(ctx context.Context, err error) {
	t.attempts++
	t.noted = false
	if t.first.IsZero() {
		t.first = time.Now()
	}
	if t.last == nil || ctx.Err() == nil {
		t.last = err
	}
}

// history is the part of an error's text that tells how often and how long.
func (t *trouble) history() string {
	if t.attempts == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts over %v, first failure at %s",
		t.attempts, time.Since(t.began).Round(time.Millisecond), t.first.UTC().Format("15:04:05.000Z"))
}

// attempts sends t until it succeeds, is refused, or its retries are used up. It
// returns what was sent last: t, or the part of it that was still wanted; nil
// where nobody wants it any more.
//
//nolint:contextcheck // a request is shared by bundles and ends with none of them
func (p *pool) attempts(t *batch) (*batch, *trouble, error) {
	d := t.lane.publisher
	story := &trouble{topic: d.topic, began: time.Now()}
	ctx := d.ctx
	if limit := p.opts.RetryTotalTimeout; limit != options.Disabled {
		// A budget in time covers the attempt that is under way, too.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, story.began.Add(limit))
		defer cancel()
	}
	r := &request{pool: p, batch: t, story: story, ctx: ctx, backoff: newBackoff(&p.opts)}
	defer r.stepBack()
	err := r.run()
	return r.batch, story, err
}

// A request is a batch on its way to its verdict.
type request struct {
	pool    *pool
	batch   *batch // nil once nobody wants it
	story   *trouble
	ctx     context.Context // of the request with its retries
	backoff *backoff
	leads   *incident // whose turn it has
	parked  int       // messages of it in pool.parked
	created int       // publisher.created when the latest attempt was sent
}

func (r *request) publisher() *publisher { return r.batch.lane.publisher }

func (r *request) run() error {
	if err := r.awaitTopic(); err != nil || r.batch == nil {
		return err
	}
	for {
		err := r.attempt()
		if err == nil {
			r.found()
			return nil
		}
		r.story.failed(r.ctx, err)
		// The request's own deadline is the end of its budget, and no answer:
		// only the publisher's context says that nobody wants one any more.
		switch class := transport.Classify(r.publisher().ctx, err); {
		case class == transport.Missing && r.pool.create != nil:
			err = r.recover()
		case class == transport.Retryable:
			err = r.retry()
		case class == transport.Rejected:
			r.found()
			return r.pool.refusal(r.story, "")
		default:
			return r.pool.refusal(r.story, "")
		}
		if err != nil || r.batch == nil {
			return err
		}
	}
}

// attempt sends the batch once.
func (r *request) attempt() error {
	ctx := r.ctx
	if d := r.pool.rpcTimeout(r.story.attempts); d != options.Disabled {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	r.pool.mu.Lock()
	r.created = r.publisher().created
	r.pool.mu.Unlock()
	return r.pool.send(ctx, r.batch.payload, r.batch.messages())
}

// rpcTimeout is the deadline of the attempt after that many, or options.Disabled.
func (p *pool) rpcTimeout(attempts int) time.Duration {
	o := &p.opts
	if o.RetryInitialRPCTimeout == options.Disabled || o.RetryMaxRPCTimeout == options.Disabled {
		return options.Disabled
	}
	d := float64(o.RetryInitialRPCTimeout) * math.Pow(o.RetryRPCTimeoutMultiplier, float64(attempts))
	if d >= float64(o.RetryMaxRPCTimeout) { // or more than a Duration holds
		return o.RetryMaxRPCTimeout
	}
	return time.Duration(d)
}

// retry waits until the batch is to be sent again, if the budget allows it.
func (r *request) retry() error {
	p := r.pool
	r.stepBack() // another request may find out about the topic meanwhile
	if spent := r.spent(); spent != "" {
		return p.refusal(r.story, spent)
	}
	p.mu.Lock()
	p.noteLocked(r.batch, r.story)
	p.mu.Unlock()
	d, ok := r.backoff.next(r.ctx, p.lastAttempt())
	if !ok {
		return p.refusal(r.story, p.budget())
	}
	if err := r.rest(d, nil); err != nil {
		return p.refusal(r.story, p.budget())
	}
	return nil
}

// lastAttempt is what a pause leaves of the budget in time for one more attempt.
func (p *pool) lastAttempt() time.Duration { return min(time.Second, p.opts.RetryTotalTimeout/10) }

// spent names the setting whose bound on retries is reached, or returns "".
func (r *request) spent() string {
	o := &r.pool.opts
	switch {
	case o.RetryMaxAttempts > 0 && r.story.attempts >= o.RetryMaxAttempts:
		return fmt.Sprintf("options.Publisher.RetryMaxAttempts (%d)", o.RetryMaxAttempts)
	case r.ctx.Err() != nil:
		return r.pool.budget()
	default:
		return ""
	}
}

func (p *pool) budget() string {
	return fmt.Sprintf("options.Publisher.RetryTotalTimeout (%v)", p.opts.RetryTotalTimeout)
}

// rest lets d pass while nothing is on the wire, or less when over is closed or
// when nobody wants the batch any more; what is not wanted then leaves it. The
// error is the context's.
func (r *request) rest(d time.Duration, over <-chan struct{}) error {
	wake := r.pool.restLocking(r.batch)
	timer := time.NewTimer(d)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
	case <-wake:
	case <-over:
	case <-r.ctx.Done():
		err = r.ctx.Err()
	}
	r.batch = r.pool.resume(r.batch)
	if r.batch == nil {
		return nil
	}
	return err
}

// restLocking lets bundles that end take their messages' room out of t. The
// channel is closed once nobody wants t any more.
func (p *pool) restLocking(t *batch) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.state = resting
	wake := make(chan struct{})
	if !t.wantedLocked() {
		close(wake)
		return wake
	}
	t.wake = wake
	return wake
}

// resume ends a rest.
func (p *pool) resume(t *batch) *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.wake = nil
	return p.livingLocked(t)
}

// backoff is the pause before each retry: exponential, with full jitter, so that
// the workers of a job do not come back all at once.
type backoff struct {
	gax.Backoff
	none bool
}

func newBackoff(o *options.Publisher) *backoff {
	return &backoff{
		Backoff: gax.Backoff{Initial: o.RetryInitialDelay, Max: o.RetryMaxDelay, Multiplier: o.RetryDelayMultiplier},
		none:    o.RetryInitialDelay == options.Disabled || o.RetryMaxDelay == options.Disabled,
	}
}

// next returns the next pause. It leaves an attempt at least that much time before
// ctx's deadline, and is shorter for it; false where there is not so much left.
func (b *backoff) next(ctx context.Context, least time.Duration) (time.Duration, bool) {
	if b.none {
		return 0, ctx.Err() == nil
	}
	d := b.Pause()
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline) - least
		if left <= 0 {
			return 0, false
		}
		d = min(d, left)
	}
	return d, true
}
