// Package publish is the publisher of a worker: what the sink shares with
// whatever else publishes. It knows nothing of Beam.
//
// # Pools and bundles
//
// [Open] opens a [Bundle] in the process's pool for a configuration. A pool
// batches across its open bundles, a publisher for each topic, and caps what all
// of them together have taken in and not yet seen answered. A bundle takes
// messages in [Bundle.Add] and ends by [Bundle.Finish], which waits for exactly
// its own messages, or by [Bundle.Drop].
//
// # Where to look
//
// A message goes from check (rules) through window (room at the caps) and place
// (a publisher for its topic) into the batch of a lane (one for each ordering key,
// one for all without). A batch goes from request (attempts and retries), perhaps
// through recover (the topic is missing) and isolate (the service refused it
// whole), to settle (the verdict), which tells its bundles; guardrail counts
// rejections.
//
// # Guarantees
//
//   - Finish returns nil only once each message of the bundle was stored by the
//     service, or was rejected and taken by the handler. Messages may be published
//     more than once.
//   - Every request has at most 1,000 messages and 10,000,000 serialized bytes, and
//     messages of one ordering key, or of none.
//   - The caps hold at every instant. The one exception is a message that is
//     itself larger than the cap: it is taken in when nothing else is.
//   - A message that breaks a rule of the service touches no batch, and one that
//     the service refuses is found by halving its request: their neighbours are
//     published, and the handler gets the message.
//   - Of an ordering key one request is on the wire at a time, in the order of the
//     Adds. Once a message of a bundle has failed, nothing of that bundle that
//     comes after it on its key is sent: the bundle's next run is to send both. A
//     rejected message leaves a gap. Other keys are not held up.
//   - A refusal for another reason fails exactly the bundles that have a message in
//     the request.
//   - A missing topic is created once, if it may be; then its requests take turns to
//     try it, and the others wait.
//   - Drop returns at once. What was queued, or waits to be sent again, gives its
//     share of the caps back; what is on the wire keeps its share, and its key is
//     busy, until it is answered, and the answer fails nobody else.
//   - A wait without any answer for PublishProgressTimeout ends in an error.
//   - Add keeps no reference to the message: it is encoded into its request.
//
// # Goroutines
//
// A request without a key runs in a goroutine of its own, from the moment its batch
// is sealed until it is answered for good; a key has one while it has anything to
// send. Their number is bounded by the caps. A pool has two timers: for BatchDelay,
// and one that closes it after it had neither an open bundle nor a request for a
// while: most runners never tell a DoFn that it is done. [Close] closes at once,
// and waits for the requests.
//
// # Locks
//
// The registry's lock, then a pool's, then that of its buffers. None is held
// across an RPC, a channel, a wait, a handler or a log line. One lock serves a pool
// and all that is in it: what it guards takes about 100 ns a message, and a
// message's share of the caps and its place in a batch never disagree.
package publish
