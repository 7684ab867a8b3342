// Package sink publishes the records of a pipeline to Cloud Pub/Sub.
//
// # Writing
//
// An encoder turns a record into a message. It is an ordinary function that is
// registered in init, because workers find it by its name; [Message], [Bytes]
// and [String] need no registration, [JSON] and [Proto] that of their instance.
// [WithAttributes] and [WithOrderingKey] add to an encoder what a record has of them.
//
//	func init() { sink.RegisterEncoder(encodeOrder) }
//
//	func encodeOrder(o Order) (*message.Message, error) { … }
//
//	sink.Write(s, sink.Config{Topic: "projects/shop/topics/paid"}, encodeOrder, paid)
//
// A resolver, registered likewise, chooses a topic for each record; it is called
// before the encoder. A topic that does not exist is created, unless
// Config.CreateDisposition forbids it. The workers' account needs
// roles/pubsub.publisher on the topics and, to create one, pubsub.topics.create on
// the project; the sink makes no other calls than Publish and CreateTopic. A
// dead-letter queue is looked up once, before the first bundle.
//
// # Guarantees
//
//   - A bundle succeeds only once every record of it is published, was skipped by
//     the encoder, or has gone to the failure policy; its runner commits it after
//     that. A record may be published more than once: when a bundle is retried, or
//     when an answer is lost.
//   - Requests are batched across the bundles of a Write that run in a worker.
//     What a Write has taken in on a worker and not yet seen answered is capped,
//     by count and by bytes; at the cap the producer waits.
//   - Requests that fail for a reason that may pass are sent again, within the
//     budget of [options.Publisher]. What is refused for good, or was not answered
//     within the budget, fails the bundles that have a message in the request,
//     naming topic, status, attempts and remedy.
//   - A bundle that fails leaves nothing waiting in the worker. What is on the wire
//     keeps its share of the caps until it is answered.
//
// # Order
//
// A message with an ordering key fails the bundle, unless
// options.Publisher.EnableMessageOrdering is set. With it, one request of a key is
// on the wire at a time, and is sent again until it is answered; a key in trouble
// holds up no other. A consumer sees the first copies of a key in order; copies may
// follow. A record that the failure policy takes leaves a gap. Messages without a
// key have no order.
//
// [options.OrderInPlace], the default, keeps the order in which a worker is given a
// key's records. It is the order of the records only behind a producer that gives a
// key to one bundle at a time: a read per key, or a keyed step. Records of bundles
// that run at once interleave, and one that fails beside another comes after it.
//
// [options.OrderByKey] needs no such producer. A first step encodes the records and
// stamps each message with its process and a number; a shuffle brings the messages
// of a topic and key together; a stateful step, which a runner gives each key of to
// one bundle at a time, publishes them. Runners promise no order across a shuffle,
// and prism turns records of one time round; so the second step puts what a bundle
// has of one process back into that one's order, of up to 64 MiB of a key. Messages
// that different processes prepared stand as they arrived, and so does what comes
// in different bundles: a runner that delivers a later record in an earlier bundle
// inverts them. Prism does where it splits a slow bundle in the middle of a key, and
// runs both parts at once; pubsubio.Run has it split none, and a program that runs its
// pipeline otherwise gives --experiments=prism_disable_sdf_split. The shuffle costs 7 to 10 µs a
// message on prism, and the messages in it are gone with prism's process, though
// the source has acknowledged them. Prism's shuffle has no bound: where
// pubsubio.Run runs the pipeline, its reads pause while 20,000 messages or 64 MiB
// wait for it; another producer does not. The direct runner has no state, and is
// refused.
//
// Config.SequenceAttribute numbers the messages of a topic and key, from 1 on. A
// consumer that receives in order may conclude: a number that is left out is a message
// that was rejected; a number at or under the last one is a replay, of a request
// whose answer was lost or of a bundle that was run again. It may not take two
// messages of one number for the same: a bundle that is run again may have its
// messages of different processes in another order, so that a replay can be a message
// that it has not seen. IDAttribute is what
// duplicates are dropped by.
//
// # Failures
//
// Two kinds of record can never be published, however often they are tried, and go
// to Config.OnFailure: one that the encoder returns an error for, or panics at, and
// one whose message is rejected for what it is. The sink rejects a message that
// breaks a documented rule of the service before it reaches a request, and the
// service may reject one with INVALID_ARGUMENT, which counts only for a message that
// was alone in its request. Everything else fails the bundle, so that an outage, a
// missing permission or a mistake in the program never reaches a policy that drops.
//
// [Fail] is the default, [LogAndDrop], [EmitFailed], [SendTo] and [HandleWith] are
// the others. options.Publisher.MaxConsecutiveRejections bounds how many messages in
// a row may be rejected; what an encoder refuses does not count.
//
// At the end of a bundle its own messages are answered first, then the dead-letter
// queue is flushed, then failures are emitted: a bundle that fails on the way has
// emitted none.
//
// # Metrics
//
// Namespace pubsubio.sink, by bundle as it ends. Counters:
//
//   - recordsSend and bytesSend: messages that the service answered with success, and
//     their serialized bytes. A record counts once, however often it is sent.
//   - recordsSkipped: the encoder returned nil.
//   - recordsFailed: records that went to the failure policy. pubsubio.CountsOf counts
//     those, too, that failed with their bundle.
//   - deadLetters: of these, handed to a dead-letter queue.
//   - sendErrors: attempts at requests that failed, those that were tried again too;
//     errorClass.<CODE>.errors counts them by status, as errorClass.UNAVAILABLE.errors.
//   - topicsCreated, publisherShutdownsAbandoned: what their names say.
//   - destination.<topic>.recordsSend, .bytesSend and .sendErrors, with
//     options.Publisher.PerDestinationMetrics.
//
// Gauges, as the bundle left them, of what the Write has taken in on the
// worker and not yet seen answered: inFlightMessages and inFlightBytes, and of
// these parkedMessages, which wait for a missing topic.
//
// # Goroutines and locks
//
// The transform starts no goroutine and has no lock; a file is named for each step:
// write_fn publishes in place, key_fn and ordered_fn by key, and what they share is
// in preparation and publication. The bundles of a Write on a
// worker share a pool, which runs a goroutine for each request on the wire, and
// closes itself a minute after its last use.
package sink
