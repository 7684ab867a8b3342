// Package dlq keeps the records that can never succeed, with all that is needed to
// look at them and to try them again: dead letters, in a topic of Pub/Sub or in a
// queue of one's own.
//
// # Sending
//
// A [Config] is a dead-letter queue over Pub/Sub. A sink or a source takes it as its
// failure policy, [Write] sends it a collection of failures, those of a transform of
// one's own included:
//
//	queue := dlq.Config{Topic: "projects/shop/topics/dead-letters"}
//	sink.Write(s, sink.Config{Topic: paid, OnFailure: sink.SendTo(queue)}, encodeOrder, orders)
//	dlq.Write(s, queue, failedToGeocode) // of a type with a method DeadLetter() dlq.Letter
//
// The topic must exist: the queue never creates it, since nothing would be consuming
// it. Before the first bundle of a transform in a process starts, or before a read
// does, the topic is looked up. One that does not exist is an error. One without a
// subscription is a warning, for what it gets is lost; so is what the account may not
// see (pubsub.topics.get), or what has no answer in ten seconds. The workers' account
// needs no more than roles/pubsub.publisher on the topic.
//
// A queue whose topic is the one that the records fail for would go round in circles.
// It is refused: where a pipeline is built, when a read starts, or, where a record
// chooses its topic, when its letter is offered.
//
// # Envelopes
//
// A dead letter is one message. Its data is the whole message that was given up,
// serialized as google.pubsub.v1.PubsubMessage, which every client library of
// Pub/Sub can parse: data, attributes, ordering key, and the id and publish time that
// a received one has. Its attributes say what went wrong, each in valid UTF-8 and at
// most 1,024 bytes, beyond which it is cut and ends in "...":
//
//	dlq-connector    which kind of transform gave up, as pubsubio.sink
//	dlq-destination  the topic that it was to go to, or the subscription that it came from
//	dlq-error        why
//	dlq-timestamp    when, in RFC 3339
//	dlq-worker       where: host and process
//	dlq-hops         how often it became a dead letter, 1 at first
//	dlq-payload      absent; "record" or "none" where the data is no message
//
// A message that was refused for having neither data nor attributes leaves at most its
// ordering key in the data, or none, as a message does that another connector could not
// serialize. [Decode] takes neither for a message: there is nothing to publish.
//
// A record that an encoder refused never became a message. The data is then the
// record in Beam's coding of its type, and dlq-payload says so.
//
// Text in a refused message that is not valid UTF-8 arrives as it was, byte by byte.
// [Decode] reads it. Generated code, in Go and elsewhere, refuses to parse such a
// message, as it refuses to publish one.
//
// An envelope that is larger than a request may be, for the message inside nearly
// was, goes in parts: each has all of these attributes, and dlq-id (the same in all
// of them), dlq-part ("2/3") and dlq-size (bytes of the whole). [Join] makes them one
// again. So there is no message that is too large to become a dead letter.
//
// dlq-hops counts replays. Who publishes the message again leaves the number in its
// attribute of that name, as [Entry.Replay] does, and when the message fails once
// more, the queue adds one. The queue takes any; a program that replays should stop
// at some number.
//
// # Reading
//
// [Entries] is a decoder for the subscription of a dead-letter topic:
//
//	entries := source.Read(s, source.Config{Subscriptions: source.From(letters)}, dlq.Entries)
//
// It gives an [Entry] for each message, whoever has put it there: an envelope, one
// that Pub/Sub itself has forwarded by a subscription's dead-letter policy, with its
// CloudPubSubDeadLetterSource… attributes, or any other. It fails on none.
//
// # Queues of one's own
//
// A [Queue] is a configuration: a plain value that a user puts into a transform's
// settings, as sink.SendTo does. It travels to the workers as JSON, so its type is
// registered in init with [Register]. A worker opens a [Writer] for each bundle
// that has something to say, offers it a [Letter] for each failure, and lets the
// bundle succeed only once the writer's Flush has returned. A transform does that by
// a [Sender].
//
//	func init() { dlq.Register[fileQueue]() }
//
// # Guarantees
//
// Delivery is at least once: a letter whose Flush has returned nil is durable. A
// bundle that fails drops its writer and is run again by its runner, so that its
// letters may come twice; parts of such a letter have another dlq-id each time.
// Letters of one bundle are offered in the order in which their records failed;
// nothing is promised between bundles, and Pub/Sub keeps no order.
//
// Nothing is dropped: where the topic does not answer, the bundle fails after
// Config.FlushTimeout, and where the service refuses a letter, at once.
//
// # Metrics
//
// Those of the queue over Pub/Sub, in namespace pubsubio.dlq. The counter
// deadLettersPublished is of letters, by bundle as it ends. The distribution
// deadLetterFlushMillis has how long each wait for letters took, in milliseconds, and
// the gauge longestDeadLetterFlushMillis the longest of a transform on the worker that
// reported last. The gauge outstandingDeadLetters is of messages that had no answer
// when a wait ended: zero, but for other bundles and after a failure.
//
// # Goroutines and locks
//
// A Config publishes as a sink does, with a pool for each transform in a process,
// which has a goroutine for each request on the wire and closes itself a minute after
// its last use. The package has no lock but those of its registries: of types, filled
// in init, and of the checks that were made, of which each transform's is made once
// while its other bundles wait.
package dlq
