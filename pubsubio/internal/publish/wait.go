package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// stallWarnings is how many warnings a wait gets before it times out, one at
// each such part of PublishProgressTimeout.
const stallWarnings = 10

// waitForLocked waits until done, which is asked under the lock, holds. It gives
// the lock up while it waits, and while it hands the handler what was rejected,
// and has it again when it returns. The error is the bundle's, the end of ctx, or
// a stallError.
func (b *Bundle) waitForLocked(ctx context.Context, done func() bool) error {
	p := b.pool
	for warned, began := 0, time.Now(); ; {
		switch {
		case b.err != nil:
			return b.err
		case b.newsLocked():
			if err := b.routeLocked(ctx); err != nil {
				return err
			}
			continue
		case done():
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("publish to %s: gave up waiting for answers: %w%s", b.topic, context.Cause(ctx), p.seenSinceLocked(began))
		}
		stalled := p.stalledLocked(began)
		if stalled >= p.opts.PublishProgressTimeout {
			return p.stallErrorLocked(stalled)
		}
		step := p.opts.PublishProgressTimeout / stallWarnings
		var text string
		if part := int(stalled / step); part > warned {
			warned = part
			text = p.stallWarningLocked(stalled, step)
		}
		p.unlocked(func() {
			if text != "" {
				b.handlers.Warn(ctx, text)
			}
			b.pause(ctx, step-stalled%step)
		})
	}
}

// pause returns once the bundle is signalled, ctx ends or d is over.
func (b *Bundle) pause(ctx context.Context, d time.Duration) {
	if b.timer == nil {
		b.timer = time.NewTimer(d)
	} else {
		b.timer.Reset(d)
	}
	defer b.timer.Stop()
	select {
	case <-b.wake:
	case <-ctx.Done():
	case <-b.timer.C:
	}
}

// stalledLocked is how long a wait that began then has seen no request end.
func (p *pool) stalledLocked(began time.Time) time.Duration {
	if p.answered.After(began) {
		began = p.answered
	}
	return time.Since(began)
}

// stallWarningLocked returns the text of a warning, or "" where another wait of
// the pool has just given it.
func (p *pool) stallWarningLocked(stalled, step time.Duration) string {
	if time.Since(p.warned) < step/2 {
		return ""
	}
	p.warned = time.Now()
	return "no publish has completed for " + p.stallTextLocked(stalled)
}

// warnLocked warns of a request that goes on failing while others succeed: that is
// no stall, and could go on unseen. One of the bundles that wait for it says so, at
// each tenth of PublishProgressTimeout.
func (p *pool) warnLocked(t *batch, story *trouble) {
	step := p.opts.PublishProgressTimeout / stallWarnings
	part := int(time.Since(story.first) / step)
	if part <= story.warned {
		return
	}
	story.warned = part
	if time.Since(p.answered) >= step {
		return // the waits say it
	}
	for _, s := range t.shares {
		if b := s.bundle; b != nil && !b.doneLocked() {
			b.warnings = append(b.warnings, fmt.Sprintf("publish to %s goes on failing: %s (%s)", story.topic, transport.Describe(story.last), story.history()))
			b.signal()
			return
		}
	}
}

func (p *pool) stallErrorLocked(stalled time.Duration) error {
	e := &stallError{text: p.stallTextLocked(stalled)}
	if p.trouble != nil {
		e.last = p.trouble.last
	}
	return e
}

func (p *pool) stallTextLocked(stalled time.Duration) string {
	text := fmt.Sprintf("%v (options.Publisher.PublishProgressTimeout is %v), %d messages in flight",
		stalled.Round(time.Millisecond), p.opts.PublishProgressTimeout, p.window.messages)
	return text + p.seenSinceLocked(p.answered)
}

// seenSinceLocked says how the last attempt failed, or that nothing at all was
// answered since then, as a text goes on with it; "" where all went well.
func (p *pool) seenSinceLocked(then time.Time) string {
	if t := p.trouble; t != nil {
		text := fmt.Sprintf("; the last attempt, for %s: %s (%s)", t.topic, transport.Describe(t.last), t.history())
		if remedy := p.remedyFor(t.last); remedy != "" {
			text += "; " + remedy
		}
		return text
	}
	if p.answered.After(then) {
		return ""
	}
	return fmt.Sprintf("; no answer at all from %s, for %s; check that the workers reach the endpoint", p.endpoint, p.awaitedLocked())
}

// awaitedLocked names the topics that have messages without an answer: one, and how
// many others there are.
func (p *pool) awaitedLocked() string {
	var topics []string
	for topic, d := range p.topics.byTopic {
		if !d.cleanLocked() {
			topics = append(topics, topic)
		}
	}
	if len(topics) > 1 {
		return fmt.Sprintf("%s and %d more", slices.Min(topics), len(topics)-1)
	}
	return strings.Join(topics, "")
}

// A stallError says that no publish of the pool completed for as long as
// PublishProgressTimeout allows. It unwraps to the last status that an attempt
// was answered with, if any was.
type stallError struct {
	text string
	last error
}

func (e *stallError) Error() string { return "no publish has completed for " + e.text }

// Unwrap returns the last status, or nil.
func (e *stallError) Unwrap() error { return e.last }
