package options

import (
	"fmt"
	"time"
)

// Limits of one publish request, from "Quotas and limits" in the Pub/Sub
// documentation (https://cloud.google.com/pubsub/quotas#resource_limits).
const (
	// MaxRequestMessages is how many messages the service takes in one request.
	MaxRequestMessages = 1000
	// MaxRequestBytes is how large a request may be, in serialized bytes.
	MaxRequestBytes = 10_000_000
)

// Publisher tunes how a worker's sink batches, retries and bounds what it
// publishes. The zero value holds every default.
type Publisher struct {
	// BatchElementCount is how many messages make a publish request full.
	// Default 100, at most [MaxRequestMessages].
	BatchElementCount int

	// BatchBytes is how many serialized bytes make a publish request full.
	// Default 1 MB (1,000,000) or MaxInFlightBytes, whichever is less; at most
	// [MaxRequestBytes], and not above MaxInFlightBytes. A larger message is sent
	// alone.
	BatchBytes int

	// BatchDelay is how long a message may wait for its request to fill.
	// Default 10 ms, at least 1 ms, and under PublishProgressTimeout. The end of a
	// bundle sends at once what is waiting.
	BatchDelay time.Duration

	// RetryTotalTimeout is the budget of one publish request with its retries.
	// Default 600 s, at least 1 ms; [Disabled] removes the bound in time, and
	// RetryMaxAttempts must then be set. Refused beside EnableMessageOrdering.
	RetryTotalTimeout time.Duration

	// RetryInitialDelay is the longest pause before the first retry: each is drawn
	// from nothing to its bound, so that workers do not come back all at once.
	// Default 100 ms or RetryMaxDelay, whichever is less; at least 1 ms; [Disabled]
	// means none.
	RetryInitialDelay time.Duration

	// RetryDelayMultiplier is what that bound grows by at each retry. Default 4,
	// 1 to 1,000.
	RetryDelayMultiplier float64

	// RetryMaxDelay caps the pause between retries. Default 60 s or
	// RetryInitialDelay, whichever is more; 1 ms to 24 h, and not under
	// RetryInitialDelay; [Disabled] means no pause at all.
	RetryMaxDelay time.Duration

	// RetryMaxAttempts caps how often a request is sent. Default: bounded by
	// RetryTotalTimeout only. Refused beside EnableMessageOrdering.
	RetryMaxAttempts int

	// RetryInitialRPCTimeout is the deadline of a request's first attempt. Default
	// 60 s, at least 1 ms; [Disabled] leaves every attempt without one, so that
	// RetryTotalTimeout must then be set: a request that is never answered would
	// otherwise hold its bundle for ever. Not to be disabled beside
	// EnableMessageOrdering.
	RetryInitialRPCTimeout time.Duration

	// RetryRPCTimeoutMultiplier is what the deadline grows by at each further
	// attempt. Default 1, 1 to 1,000.
	RetryRPCTimeoutMultiplier float64

	// RetryMaxRPCTimeout caps the deadline of an attempt. Default 60 s or
	// RetryInitialRPCTimeout, whichever is more; at least 1 ms, and not under
	// RetryInitialRPCTimeout; [Disabled] leaves every attempt without one, under the
	// same conditions.
	RetryMaxRPCTimeout time.Duration

	// EnableMessageOrdering honours ordering keys: of a key's messages for a topic
	// one request is on the wire at a time, in the order in which the worker was
	// given them (sink.Config.OrderBy says what that order is worth), and other
	// keys are not held up. Without it a message that carries a key fails the
	// bundle: its order would be lost in silence. Messages without a key publish
	// freely either way.
	//
	// An ordered request is sent again until it is answered: giving up on one
	// message of a key and going on with the next would break the order. So
	// RetryTotalTimeout and RetryMaxAttempts are refused beside it, for messages
	// without a key, too, and a lasting outage ends by PublishProgressTimeout; one
	// topic that fails beside others that succeed is no stall, and goes on failing,
	// with a warning at each tenth of that. A dropping failure policy leaves a gap
	// in the key of the message that it drops. Default false.
	EnableMessageOrdering bool

	// MaxInFlightMessages caps what one Write has taken in on one worker and not
	// yet seen answered, over all of its topics and of the bundles that run there.
	// Each Write of a pipeline has caps of its own. Default 1,000. At the cap a
	// write sends what is batching, the oldest first, until half of the room is on
	// the wire, then waits, at most PublishProgressTimeout between two completions.
	//
	// With many topics or ordering keys the cap decides how full requests are: raise
	// it to a hundred messages for each of those that are busy at once. With a service
	// that answers after 10 ms it bounds the rate to 100,000 messages a second.
	MaxInFlightMessages int

	// MaxInFlightBytes is the same cap in serialized bytes. Default 64 MiB;
	// [Unbounded] leaves MaxInFlightMessages as the only cap. A larger message
	// is sent alone.
	MaxInFlightBytes int64

	// MaxActivePublishers caps the topics that one Write keeps a publisher for on
	// one worker. Default 100, at least 1. A record for another topic releases the
	// publisher that was used least recently of those that are clean: nothing of
	// theirs is batching, on the wire or under repair. Where none is clean, what is
	// batching is sent, and the record waits until one is.
	MaxActivePublishers int

	// DestinationIdleTimeout is how long a clean publisher may be unused: one that
	// has been for longer is released at the successful end of a bundle. A later
	// record reopens it. Default 1 h, at least 1 ms.
	DestinationIdleTimeout time.Duration

	// PublishProgressTimeout is how long the sink may wait with no publish
	// completing before the bundle fails. Default 600 s, at least 1 ms. It
	// restarts at every completion: it bounds a stall, not a slow topic. It covers
	// every wait: for room at the caps, for a publisher, for the answers at a
	// bundle's end, through creation and isolation. A warning is logged at each
	// tenth of it.
	PublishProgressTimeout time.Duration

	// RecoveryInitialBackoff is the first pause before a message is published
	// again to a topic that was missing and has been created; it doubles at each
	// further attempt, and is drawn from ±25 % around that. Default 500 ms or
	// RecoveryMaxBackoff, whichever is less; at least 1 ms.
	RecoveryInitialBackoff time.Duration

	// RecoveryMaxBackoff caps that pause, before the draw. Default 10 s or
	// RecoveryInitialBackoff, whichever is more; not under
	// RecoveryInitialBackoff.
	RecoveryMaxBackoff time.Duration

	// RecoveryMaxAttempts is how often publishing to a topic that was created is
	// tried while the service still answers that it does not exist: for each topic,
	// and anew each time it goes missing. Default 10, at least 1: with the default
	// backoffs about a minute.
	RecoveryMaxAttempts int

	// MaxConsecutiveRejections is the guardrail on a dropping failure policy: that
	// many messages rejected in a row, over all topics of a Write on a worker, with
	// no success between them, fail the bundle of the last one, after it went to
	// the policy. Any success starts the count again, and so does the failure. What
	// an encoder refuses does not count. Default 100, at least 1; [Unbounded]
	// removes it.
	MaxConsecutiveRejections int

	// PerDestinationMetrics adds counters for each topic to those of the Write:
	// destination.<topic>.recordsSend, .bytesSend and .sendErrors. Runners keep
	// every counter for as long as the job runs: leave it off where records choose
	// among many topics. Default false.
	PerDestinationMetrics bool

	// Compression is the size, in serialized bytes, from which a request is
	// compressed with gzip on the wire. The service's limits count before it, and
	// so do BatchBytes and the caps. It trades CPU for bandwidth: of JSON a sixth is
	// left, for about 25 µs a kilobyte. Default 0: never.
	Compression int

	// ShutdownTimeout is how long one release of publishers may take, however many
	// it covers: when an unclean one must make room for another, where an overrun
	// fails the bundle, and when a worker's pool closes. Default 30 s, at least
	// 1 ms.
	ShutdownTimeout time.Duration
}

// WithDefaults returns p with every unset field at its default.
func (p Publisher) WithDefaults() Publisher {
	orDefault(&p.MaxInFlightBytes, 64<<20)
	batchBytes := 1_000_000
	if p.MaxInFlightBytes > 0 {
		batchBytes = int(min(int64(batchBytes), p.MaxInFlightBytes))
	}
	orDefault(&p.BatchElementCount, 100)
	orDefault(&p.BatchBytes, batchBytes)
	orDefault(&p.BatchDelay, 10*time.Millisecond)
	orDefault(&p.RetryTotalTimeout, 600*time.Second)
	orDefault(&p.RetryInitialDelay, orLess(100*time.Millisecond, p.RetryMaxDelay))
	orDefault(&p.RetryDelayMultiplier, 4)
	orDefault(&p.RetryMaxDelay, max(60*time.Second, min(p.RetryInitialDelay, maxRetryDelay)))
	orDefault(&p.RetryInitialRPCTimeout, 60*time.Second)
	orDefault(&p.RetryRPCTimeoutMultiplier, 1)
	orDefault(&p.RetryMaxRPCTimeout, max(60*time.Second, p.RetryInitialRPCTimeout))
	orDefault(&p.MaxInFlightMessages, 1000)
	orDefault(&p.MaxActivePublishers, 100)
	orDefault(&p.DestinationIdleTimeout, time.Hour)
	orDefault(&p.RecoveryInitialBackoff, orLess(500*time.Millisecond, p.RecoveryMaxBackoff))
	orDefault(&p.RecoveryMaxBackoff, max(10*time.Second, p.RecoveryInitialBackoff))
	orDefault(&p.RecoveryMaxAttempts, 10)
	orDefault(&p.MaxConsecutiveRejections, 100)
	orDefault(&p.PublishProgressTimeout, 600*time.Second)
	orDefault(&p.ShutdownTimeout, 30*time.Second)
	return p
}

// orLess is a default that has to fit under a bound, where that is set.
func orLess(d, bound time.Duration) time.Duration {
	if bound >= time.Millisecond {
		return min(d, bound)
	}
	return d
}

// Faults records in f each rule that p, with its defaults, breaks.
func (p Publisher) Faults(f *Faults) {
	if p.EnableMessageOrdering {
		p.orderingFaults(f)
		// Neither bounds anything here: do not report them a second time.
		p.RetryTotalTimeout, p.RetryMaxAttempts = 0, 0
	}
	p = p.WithDefaults()
	p.batchFaults(f)
	p.retryFaults(f)
	p.poolFaults(f)
	p.recoveryFaults(f)
}

// in is how the fields are named in faults.
const in = "options.Publisher."

// orderingFaults looks at what was set, before defaults: a bound that an ordered
// publish cannot keep is refused rather than ignored.
func (p Publisher) orderingFaults(f *Faults) {
	const rule = "must be unset beside EnableMessageOrdering: an ordered publish is retried until it is answered, PublishProgressTimeout bounds an outage"
	if p.RetryTotalTimeout != 0 {
		f.Add(in+"RetryTotalTimeout", durationOrDisabled(p.RetryTotalTimeout), rule)
	}
	if p.RetryMaxAttempts != 0 {
		f.Add(in+"RetryMaxAttempts", p.RetryMaxAttempts, rule)
	}
	const unanswered = "must be positive beside EnableMessageOrdering, or a request that is never answered holds its ordering key for ever"
	if p.RetryInitialRPCTimeout == Disabled {
		f.Add(in+"RetryInitialRPCTimeout", "options.Disabled", unanswered)
	}
	if p.RetryMaxRPCTimeout == Disabled {
		f.Add(in+"RetryMaxRPCTimeout", "options.Disabled", unanswered)
	}
}

func (p Publisher) batchFaults(f *Faults) {
	if p.BatchElementCount < 1 || p.BatchElementCount > MaxRequestMessages {
		f.Add(in+"BatchElementCount", p.BatchElementCount, fmt.Sprintf("must be 1 to %d", MaxRequestMessages))
	}
	if p.BatchBytes < 1 || p.BatchBytes > MaxRequestBytes {
		f.Add(in+"BatchBytes", p.BatchBytes, fmt.Sprintf("must be 1 to %d", MaxRequestBytes))
	}
	if p.MaxInFlightBytes > 0 && int64(p.BatchBytes) > p.MaxInFlightBytes {
		f.Add(in+"BatchBytes", p.BatchBytes, fmt.Sprintf("must not be above MaxInFlightBytes (%d)", p.MaxInFlightBytes))
	}
	millis(f, in+"BatchDelay", p.BatchDelay)
	if p.PublishProgressTimeout > 0 && p.BatchDelay >= p.PublishProgressTimeout {
		f.Add(in+"BatchDelay", p.BatchDelay, fmt.Sprintf("must be under PublishProgressTimeout (%v), or waiting for a batch to fill is a stall", p.PublishProgressTimeout))
	}
	atLeast(f, in+"Compression", p.Compression, 0)
}

func (p Publisher) retryFaults(f *Faults) {
	millisOrDisabled(f, in+"RetryTotalTimeout", p.RetryTotalTimeout)
	millisOrDisabled(f, in+"RetryInitialDelay", p.RetryInitialDelay)
	multiplier(f, in+"RetryDelayMultiplier", p.RetryDelayMultiplier)
	millisOrDisabled(f, in+"RetryMaxDelay", p.RetryMaxDelay)
	if p.RetryMaxDelay > maxRetryDelay {
		f.Add(in+"RetryMaxDelay", p.RetryMaxDelay, fmt.Sprintf("must be at most %v", maxRetryDelay))
	}
	if p.RetryMaxDelay >= time.Millisecond && p.RetryMaxDelay < p.RetryInitialDelay {
		f.Add(in+"RetryMaxDelay", p.RetryMaxDelay, fmt.Sprintf("must not be under RetryInitialDelay (%v)", p.RetryInitialDelay))
	}
	atLeast(f, in+"RetryMaxAttempts", p.RetryMaxAttempts, 0)
	if p.RetryTotalTimeout == Disabled && p.RetryMaxAttempts == 0 {
		f.Add(in+"RetryMaxAttempts", 0, "must be positive beside RetryTotalTimeout = options.Disabled, or nothing bounds the retries")
	}
	millisOrDisabled(f, in+"RetryInitialRPCTimeout", p.RetryInitialRPCTimeout)
	multiplier(f, in+"RetryRPCTimeoutMultiplier", p.RetryRPCTimeoutMultiplier)
	millisOrDisabled(f, in+"RetryMaxRPCTimeout", p.RetryMaxRPCTimeout)
	if p.RetryMaxRPCTimeout >= time.Millisecond && p.RetryMaxRPCTimeout < p.RetryInitialRPCTimeout {
		f.Add(in+"RetryMaxRPCTimeout", p.RetryMaxRPCTimeout, fmt.Sprintf("must not be under RetryInitialRPCTimeout (%v)", p.RetryInitialRPCTimeout))
	}
	if p.RetryTotalTimeout == Disabled {
		const rule = "must be positive beside RetryTotalTimeout = options.Disabled, or a request that is never answered holds its bundle for ever"
		if p.RetryInitialRPCTimeout == Disabled {
			f.Add(in+"RetryInitialRPCTimeout", "options.Disabled", rule)
		}
		if p.RetryMaxRPCTimeout == Disabled {
			f.Add(in+"RetryMaxRPCTimeout", "options.Disabled", rule)
		}
	}
}

func (p Publisher) poolFaults(f *Faults) {
	atLeast(f, in+"MaxInFlightMessages", p.MaxInFlightMessages, 1)
	positiveOr(f, in+"MaxInFlightBytes", p.MaxInFlightBytes, Unbounded, "options.Unbounded")
	atLeast(f, in+"MaxActivePublishers", p.MaxActivePublishers, 1)
	millis(f, in+"DestinationIdleTimeout", p.DestinationIdleTimeout)
	millis(f, in+"PublishProgressTimeout", p.PublishProgressTimeout)
	millis(f, in+"ShutdownTimeout", p.ShutdownTimeout)
}

func (p Publisher) recoveryFaults(f *Faults) {
	millis(f, in+"RecoveryInitialBackoff", p.RecoveryInitialBackoff)
	millis(f, in+"RecoveryMaxBackoff", p.RecoveryMaxBackoff)
	if p.RecoveryMaxBackoff >= time.Millisecond && p.RecoveryMaxBackoff < p.RecoveryInitialBackoff {
		f.Add(in+"RecoveryMaxBackoff", p.RecoveryMaxBackoff, fmt.Sprintf("must not be under RecoveryInitialBackoff (%v)", p.RecoveryInitialBackoff))
	}
	atLeast(f, in+"RecoveryMaxAttempts", p.RecoveryMaxAttempts, 1)
	positiveOr(f, in+"MaxConsecutiveRejections", p.MaxConsecutiveRejections, Unbounded, "options.Unbounded")
}

// maxMultiplier and maxRetryDelay keep what grows within a time.Duration.
const (
	maxMultiplier = 1000
	maxRetryDelay = 24 * time.Hour
)

func multiplier(f *Faults, field string, v float64) {
	if !(v >= 1 && v <= maxMultiplier) { // nor NaN
		f.Add(field, v, fmt.Sprintf("must be 1 to %d", maxMultiplier))
	}
}

// durationOrDisabled is how a setting is shown that Disabled may turn off.
func durationOrDisabled(d time.Duration) any {
	if d == Disabled {
		return "options.Disabled"
	}
	return d
}
