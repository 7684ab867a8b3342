package options

import (
	"fmt"
	"time"
)

// Subscriber tunes how a worker's readers pull, buffer and hold messages. The
// zero value holds every default.
type Subscriber struct {
	// MaxOutstandingMessages is how many messages one split of a subscription may
	// have received and not yet acknowledged, returned or let lapse before it
	// stops pulling. Default 50,000. A Read holds up to that many for each of its
	// subscriptions and of their splits. An acknowledgement waits for the commit
	// of its bundle, so this bounds the rate: size it at least at the peak rate of
	// a split times the longest time from emission to acknowledgement, which is up to
	// twice that between two commits (package source says on which runners). The budget is the split's, however
	// many Splits there are; its Streams share it.
	MaxOutstandingMessages int

	// MaxOutstandingBytes is the same in bytes of the messages as received, also
	// for each split. Default 100 MB (100,000,000).
	MaxOutstandingBytes int64

	// BufferMaxMessages caps what all readers of one Read on one worker have
	// received and not yet emitted; at the cap they stop receiving. Each Read of a
	// pipeline has a cap of its own. Default 10,000. The cap can be overshot by
	// one response, of up to about a thousand messages, for each stream that was
	// receiving as it was reached.
	BufferMaxMessages int

	// BufferMaxBytes is the same in bytes; a response is up to about 10 MB.
	// Default 64 MiB.
	BufferMaxBytes int64

	// PausedBufferMaxMessages is how many messages that are received and not yet
	// emitted a split may hold while the runner does not come back for it. From that
	// many on the split is parked: its streams are closed and what it has not emitted
	// is returned to the service, for other subscribers; when the runner does come
	// back, they are opened again. The runner is late where no bundle has claimed the
	// split for 10 s, twice the longest delay that a read asks for.
	//
	// Default half of MaxOutstandingMessages, which it may not pass: flow control
	// would have stopped the streams before. It also takes BufferMaxMessages above it
	// to be reached. A return counts as a delivery attempt of a dead-letter policy:
	// where bundles take long, keep it above what a split buffers. After a minute a
	// split is parked whatever it holds.
	PausedBufferMaxMessages int

	// PausedBufferMaxBytes is the same in bytes of the messages as received. Default
	// half of MaxOutstandingBytes, which it may not pass.
	PausedBufferMaxBytes int64

	// Streams is how many streaming pulls each split has, of about 10 MB/s each from
	// the service: what makes one split faster, as Splits spread a subscription over
	// workers. They share what the split may hold: each is sent its part of
	// MaxOutstandingMessages and MaxOutstandingBytes. One that is refused, for a quota
	// say, is tried again while the others go on. Default 1, at most 90, for they
	// share a connection, and at most MaxOutstandingMessages; 1 beside Ordering
	// PerKey, whose messages come over one stream.
	Streams int

	// MaxExtension is how long after its receipt a message's lease is extended;
	// after that the service delivers it again. Default 1 h, at least 1 s;
	// [Disabled] extends nothing. It must comfortably exceed the time between
	// two commits.
	// What is still buffered then is dropped and comes again; what was emitted is
	// acknowledged all the same, and may come twice.
	MaxExtension time.Duration

	// MinExtensionPeriod and MaxExtensionPeriod bound how long a lease is asked for
	// at a time, by a stream and by an extension. Within them it follows how long
	// messages were held before: a short lease gives back soon what a killed worker
	// held, a long one needs few extensions. Default 10 s and 600 s, which are the
	// service's bounds; whole seconds within these, the minimum not above the
	// maximum. Until 100 messages were acknowledged a lease is a minute, within these.
	MinExtensionPeriod, MaxExtensionPeriod time.Duration

	// AwaitAckConfirmation is how long the service may take to confirm the
	// acknowledgement of what a bundle has committed: after that, or where the service
	// refuses it, the next bundle fails. Default 0: nothing waits for the answer, and an
	// acknowledgement is tried again while the lease of its messages is extended, with
	// a warning once a minute where it is refused. At least 1 ms.
	AwaitAckConfirmation time.Duration

	// MaxRecordsPerBundle is how many messages a bundle takes before it closes, whatever
	// number of records each is decoded into. Default 10,000. More than
	// MaxOutstandingMessages is never reached.
	MaxRecordsPerBundle int

	// MaxBundleBytes is the same in bytes of the messages as received. Default
	// 16 MiB.
	MaxBundleBytes int64

	// MaxBundleDuration is how long a bundle goes on taking messages. Default
	// 1 s, at least 1 ms.
	MaxBundleDuration time.Duration

	// BundleFillDelay is how long a bundle that has emitted messages and has no more to
	// emit waits for others, in all, where they come that soon after one another. What
	// comes is emitted at once, in the same bundle; larger bundles cost less (0021 of
	// docs/decisions has figures). What waits for the end of the bundle is that much
	// later: acknowledgements, steps behind a shuffle, and what a write that is fused with
	// the read has batched.
	//
	// Default 5 ms, at least 1 ms, at most MaxBundleDuration; [Disabled], which is the
	// default beside Ordering PerKey, waits for nothing: the service sends no more of a key
	// until what it sent is acknowledged. A bundle without messages waits in any case.
	BundleFillDelay time.Duration

	// FirstCommitTimeout is how long a reader may hold emitted messages without
	// ever having seen a bundle commit, before the bundle fails with an error
	// that says that the runner does not finalize bundles. Default 10 min, at
	// least 1 s; [Disabled] turns the check off. Keep it above two intervals of a
	// runner's checkpoints. It is looked at when a bundle begins; a reader that no bundle
	// comes back for logs a warning when it gives up, after as long, or after ten minutes.
	FirstCommitTimeout time.Duration

	// ShutdownTimeout is how long closing the readers of a Read on a worker may take,
	// all of them together: ending their streams and returning what they hold. What
	// is not returned by then comes again when its lease ends, and the counter
	// subscriberShutdownsAbandoned says so. Default 5 s, at least 1 ms. A clean stop by
	// pubsubio.Run is cut off after a minute, whatever is set here.
	ShutdownTimeout time.Duration
}

// WithDefaults returns s with every unset field at its default.
func (s Subscriber) WithDefaults() Subscriber {
	orDefault(&s.MaxOutstandingMessages, 50_000)
	orDefault(&s.MaxOutstandingBytes, 100_000_000)
	orDefault(&s.BufferMaxMessages, 10_000)
	orDefault(&s.BufferMaxBytes, 64<<20)
	orDefault(&s.PausedBufferMaxMessages, max(s.MaxOutstandingMessages/2, 1))
	orDefault(&s.PausedBufferMaxBytes, max(s.MaxOutstandingBytes/2, 1))
	orDefault(&s.Streams, 1)
	orDefault(&s.MaxExtension, time.Hour)
	orDefault(&s.MinExtensionPeriod, 10*time.Second)
	orDefault(&s.MaxExtensionPeriod, 600*time.Second)
	orDefault(&s.MaxRecordsPerBundle, 10_000)
	orDefault(&s.MaxBundleBytes, 16<<20)
	orDefault(&s.MaxBundleDuration, time.Second)
	orDefault(&s.BundleFillDelay, min(5*time.Millisecond, max(s.MaxBundleDuration, time.Millisecond)))
	orDefault(&s.FirstCommitTimeout, 10*time.Minute)
	orDefault(&s.ShutdownTimeout, 5*time.Second)
	return s
}

// Faults records in f each rule that s, with its defaults, breaks.
func (s Subscriber) Faults(f *Faults) {
	s = s.WithDefaults()
	const in = "options.Subscriber."
	atLeast(f, in+"MaxOutstandingMessages", s.MaxOutstandingMessages, 1)
	atLeast(f, in+"MaxOutstandingBytes", s.MaxOutstandingBytes, 1)
	atLeast(f, in+"BufferMaxMessages", s.BufferMaxMessages, 1)
	atLeast(f, in+"BufferMaxBytes", s.BufferMaxBytes, 1)
	s.pausedFaults(f, in)
	s.streamsFaults(f, in)
	atLeast(f, in+"MaxRecordsPerBundle", s.MaxRecordsPerBundle, 1)
	atLeast(f, in+"MaxBundleBytes", s.MaxBundleBytes, 1)
	millis(f, in+"MaxBundleDuration", s.MaxBundleDuration)
	millisOrDisabled(f, in+"BundleFillDelay", s.BundleFillDelay)
	if s.MaxBundleDuration >= time.Millisecond && s.BundleFillDelay > s.MaxBundleDuration {
		f.Add(in+"BundleFillDelay", s.BundleFillDelay, fmt.Sprintf("must not be above MaxBundleDuration (%v)", s.MaxBundleDuration))
	}
	secondOr := func(field string, d time.Duration) {
		if d < time.Second && d != Disabled {
			f.Add(in+field, d, "must be at least 1s or options.Disabled")
		}
	}
	secondOr("MaxExtension", s.MaxExtension)
	secondOr("FirstCommitTimeout", s.FirstCommitTimeout)
	millis(f, in+"ShutdownTimeout", s.ShutdownTimeout)
	extensionPeriod := func(field string, d time.Duration) {
		if d < 10*time.Second || d > 600*time.Second || d%time.Second != 0 {
			f.Add(in+field, d, "must be from 10s to 600s, in whole seconds")
		}
	}
	extensionPeriod("MinExtensionPeriod", s.MinExtensionPeriod)
	extensionPeriod("MaxExtensionPeriod", s.MaxExtensionPeriod)
	if s.MinExtensionPeriod > s.MaxExtensionPeriod {
		f.Add(in+"MinExtensionPeriod", s.MinExtensionPeriod, fmt.Sprintf("must not be above MaxExtensionPeriod (%v)", s.MaxExtensionPeriod))
	}
	if s.AwaitAckConfirmation != 0 {
		millis(f, in+"AwaitAckConfirmation", s.AwaitAckConfirmation)
	}
	if s.MaxExtension > 0 && s.MaxExtension < s.MaxBundleDuration {
		f.Add(in+"MaxExtension", s.MaxExtension, fmt.Sprintf("must not be under MaxBundleDuration (%v), or leases lapse within a bundle", s.MaxBundleDuration))
	}
}

func (s Subscriber) pausedFaults(f *Faults, in string) {
	const never = "flow control would stop the streams before a paused split holds so much"
	atLeast(f, in+"PausedBufferMaxMessages", s.PausedBufferMaxMessages, 1)
	if s.MaxOutstandingMessages > 0 && s.PausedBufferMaxMessages > s.MaxOutstandingMessages {
		f.Add(in+"PausedBufferMaxMessages", s.PausedBufferMaxMessages, fmt.Sprintf("must not be above MaxOutstandingMessages (%d): %s", s.MaxOutstandingMessages, never))
	}
	atLeast(f, in+"PausedBufferMaxBytes", s.PausedBufferMaxBytes, 1)
	if s.MaxOutstandingBytes > 0 && s.PausedBufferMaxBytes > s.MaxOutstandingBytes {
		f.Add(in+"PausedBufferMaxBytes", s.PausedBufferMaxBytes, fmt.Sprintf("must not be above MaxOutstandingBytes (%d): %s", s.MaxOutstandingBytes, never))
	}
}

// maxStreams is what a connection carries: the service admits about a hundred
// streams on one.
const maxStreams = 90

func (s Subscriber) streamsFaults(f *Faults, in string) {
	switch {
	case s.Streams < 1 || s.Streams > maxStreams:
		f.Add(in+"Streams", s.Streams, fmt.Sprintf("must be from 1 to %d", maxStreams))
	case s.MaxOutstandingMessages > 0 && s.Streams > s.MaxOutstandingMessages:
		f.Add(in+"Streams", s.Streams, fmt.Sprintf("must not be above MaxOutstandingMessages (%d), of which each stream has its part", s.MaxOutstandingMessages))
	case s.MaxOutstandingBytes > 0 && int64(s.Streams) > s.MaxOutstandingBytes:
		f.Add(in+"Streams", s.Streams, fmt.Sprintf("must not be above MaxOutstandingBytes (%d), of which each stream has its part", s.MaxOutstandingBytes))
	}
}
