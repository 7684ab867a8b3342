// Relay moves messages from Pub/Sub subscriptions to a topic:
//
//	relay --input_subscriptions=projects/p/subscriptions/orders,projects/p/subscriptions/returns \
//	      --output_topic=projects/p/topics/moved
//
// # Messages
//
// Data and attributes are kept; attributes that the service would refuse from a
// publisher, those whose key begins with "goog", are stripped. A message is
// acknowledged after its copy was published and its bundle has committed: none is
// lost, some may be published twice after a failure.
//
// The order of messages is not kept: one that has an ordering key fails the relay,
// unless --ordering keeps the order of the messages of a key, from subscriptions that
// have message ordering, or --drop_ordering_keys publishes it without its key.
//
// # Topics and subscriptions
//
// With --output_topic_attribute each message goes to the topic whose full name is in
// that attribute. Topics and subscriptions must exist, unless --create_topics and
// --create_subscriptions have missing ones created. That, the permissions and that nothing
// would come round again is looked at before anything is done; a topic that is missing and
// that only an attribute names fails the relay when its first message comes.
//
// # Filter
//
// With --filter only messages whose attributes match are moved. It is an expression in
// the language of Pub/Sub's own filters: attributes:key, attributes.key = "value", !=,
// hasPrefix(attributes.key, "prefix"), with NOT, AND, OR and parentheses, of any length:
//
//	relay --input_subscriptions=projects/p/subscriptions/orders --output_topic=projects/p/topics/moved \
//	      --filter='attributes.event = "order.paid" AND NOT hasPrefix(attributes.region, "us-")'
//
// What does not match is acknowledged and not published: it is gone for this
// subscription, as it is for one with a filter of its own. It has come all the same, and
// is counted (filtered); --max_messages counts it, too. A filter that the subscription
// is created with is better where there can be one, for it costs nothing to receive
// what is never sent. --create_subscriptions does not make one of --filter: a
// subscription keeps its filter for ever, and the next relay may have another.
//
// # What cannot be published
//
// A message that the service can never take, which is rare for one that it has
// delivered, fails the relay; --failure_policy drops it, or sends it to the
// --dead_letter_topic, in an envelope with the reason. The same becomes of a message whose
// --output_topic_attribute holds no topic; replay publishes it where its --output_topic
// says. An ordering key that would be lost is no such reason, and fails the relay
// whatever the policy.
//
// # When it ends
//
// It goes on until it is interrupted, or until --max_messages, --max_duration or
// --stop_when_idle ends it. An interrupt (SIGINT, SIGTERM) ends it cleanly: what
// was published is acknowledged, the rest is returned; a second one kills it.
//
// # Without Pub/Sub
//
// With --embedded it needs no Pub/Sub: it starts a server in its own process,
// publishes orders to it, relays them and asks the server whether each of them
// has arrived and was acknowledged.
//
// # Where it runs
//
// Beam's flags are taken beside its own; --runner chooses where it runs, prism
// by default. Counts and progress are those of this process: where the workers
// are others, Beam's metrics tell (pubsubio.source, pubsubio.sink, and relay for what
// is filtered or has no topic).
//
// With --dry_run it checks names, existence and permissions, prints what it would do,
// and does nothing of it.
//
// # Exit codes
//
//	0    it has ended
//	1    it has failed, or could not be ended cleanly
//	2    a flag is wrong
//	130  it was interrupted; what was published is acknowledged
package main
