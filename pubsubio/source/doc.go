// Package source reads Pub/Sub subscriptions into a Beam pipeline.
//
// [Read] gives an unbounded PCollection of decoded records from one or many
// subscriptions, or one that ends where a Limit is set. It is a splittable DoFn:
// each split of each subscription is a restriction that resumes for ever.
//
// # Start
//
// Before anything is read, a startup looks up every subscription, creates those that
// are missing and have Create, checks all, and then moves them to Config.StartPosition.
// What it finds wrong is one error, which fails the job and names for each subscription
// what mends it. It runs once for a job; where the runner repeats it, it does the same.
//
// [From] names subscriptions that exist; [FromTopic] makes one for the pipeline, which a
// local run of pubsubio.Run deletes at its end.
//
// # Guarantees
//
// Delivery is at least once. A message is acknowledged only after the bundle
// that emitted it is known to have committed; until then its lease is extended, up to
// Subscriber.MaxExtension. Messages of a bundle that fails are returned at once and
// come again; those of a worker that is killed come again when their leases end: after
// a minute at first, later after about twice the time that messages are held, and ten
// minutes at most. A message that the service sends again while it is held is not
// emitted twice; other copies of a message are suppressed by Config.IDAttribute.
//
// What proves that a bundle has committed depends on the runner:
//
//   - prism finalizes a bundle after committing it, so a finalized bundle is
//     acknowledged. Prism keeps its state in memory: what was acknowledged and
//     still waits behind a shuffle, such as a window, is gone if the process
//     dies.
//   - Dataflow finalizes with best effort, and hands out the rest of a bundle to be
//     resumed if and only if the bundle has committed. Either is proof.
//   - on any other runner that finalizes, a bundle is acknowledged one round
//     later, once another bundle of the same reader is finalized that finished
//     after the first finalization had arrived. Flink finalizes a bundle up to
//     one checkpoint early, and this rule is right there too.
//   - on the direct runner, a read with a Limit is acknowledged by pubsubio.Run
//     once the whole pipeline has succeeded.
//
// pubsubio.Run knows which of these holds. A program that runs its pipeline otherwise
// gets the third, or the first or second with an explicit --runner=prism or
// --runner=dataflow.
//
// # Order
//
// With Ordering [options.PerKey] the messages of an ordering key are emitted in the order
// in which they were published. One appears for the first time only after all earlier
// ones of its key; when a bundle fails, a lease ends or a job starts again, a key goes
// back some messages and repeats them, and never skips ahead. What is emitted is in order
// within the steps that are fused with the read; what a shuffle makes of it is the
// runner's affair. The service sends about one batch of a key at a time, until it is
// acknowledged: short bundles make a key fast. docs/decisions/0021 has figures.
//
// # Decoding
//
// A decoder turns a message into records. It is an ordinary function that is
// registered in init, because workers find it by its name; [Message], [Bytes] and
// [String] need no registration, [JSON] and [Proto] that of their instance. A message
// that it refuses, by an error or a panic, is Config.OnDecodeFailure's to dispose of:
//
//	Policy      The message is
//	Fail        returned, with all of its bundle, which fails
//	Drop        acknowledged at once, and logged
//	Nack        returned at once, to stay away for Config.NackDelay
//	Leave       left for others, and returned when the read ends
//	EmitFailed  emitted on a second output, acknowledged with its bundle
//	SendTo      handed to a dead-letter queue, acknowledged with its bundle
//
// A failure of a later step is none of the decoder's: it fails the bundle.
//
// # Watermark
//
// The watermark follows the event times received, which are the publish times unless
// Config.TimestampAttribute or a decoder of [Timed] records says otherwise, never
// passing a message that is held or whose bundle is not yet finalized; while a
// subscription is drained it follows the clock at the distance of
// Config.WatermarkLag. A message that is behind the watermark when it comes is late, and
// holds nothing.
//
// # State and goroutines
//
// A reader belongs to the process, not to a DoFn: it outlives bundles and is
// found again by a nonce in the restriction. It runs two goroutines for each of its
// streams and one each for leases, for acknowledgements and for returns, and one for
// what Nack returns, once there is something. A reader that no bundle claims for a
// minute parks: it closes its streams and returns what it holds; after ten seconds,
// where that is more than a paused one may hold. Only the direct runner ever calls
// Teardown.
//
// # Metrics
//
// In the namespace pubsubio.source, for each Read. Counters, of messages unless they
// say otherwise: messagesReceived, messagesEmitted, messagesAcked, messagesNacked
// (returned), messagesLapsed (dropped from the buffer), emittedMessagesLapsed,
// messagesUnacknowledged, duplicatesSuppressed (came again while held),
// copiesSuppressed (by IDAttribute); decodeFailures, and of these messagesDropped,
// messagesNackedByPolicy, messagesLeft and deadLetters; timestampsInSeconds;
// committedByFinalization, committedByResume, committedByPipeline; streamsReopened,
// splitsParked, subscriberShutdownsAbandoned (readers that did not close in time);
// errorClass.<CODE>.errors (calls and openings of streams that failed). The
// distribution commitMillis is the time from a bundle's end to its commit, in
// milliseconds. The gauges pendingAcks, bufferedMessages, bufferedBytes, openStreams
// and parkedSplits are those of one worker, the one that reported last, over all
// readers of the Read there. What happens between bundles is reported by the next.
// pubsubio.CountsOf tells the same while a local pipeline runs.
//
// Lock order: the groups of the process, a group, a reader, then gates,
// broadcasts and settlers. No lock is held across a call, a wait or an emission.
package source
