// Relay moves messages from Pub/Sub subscriptions to a topic:
//
//	relay --input_subscriptions=projects/p/subscriptions/orders,projects/p/subscriptions/returns \
//	      --output_topic=projects/p/topics/moved
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
// With --output_topic_attribute each message goes to the topic whose full name is in
// that attribute. Topics and subscriptions must exist, unless --create_topics and
// --create_subscriptions have missing ones created.
//
// A message that the service can never take, which is rare for one that it has
// delivered, fails the relay; --failure_policy drops it, or sends it to the
// --dead_letter_topic, in an envelope with the reason.
//
// It goes on until it is interrupted, or until --max_messages, --max_duration or
// --stop_when_idle ends it. An interrupt (SIGINT, SIGTERM) ends it cleanly: what
// was published is acknowledged, the rest is returned; a second one kills it.
//
// With --embedded it needs no Pub/Sub: it starts a server in its own process,
// publishes orders to it, relays them and asks the server whether each of them
// has arrived and was acknowledged.
//
// Beam's flags are taken beside its own; --runner chooses where it runs, prism
// by default. Counts and progress are those of this process: where the workers
// are others, Beam's metrics tell.
//
// With --dry_run it checks names, existence and permissions, prints what it would do,
// and does nothing of it.
//
// It exits with 0 when it has ended, 1 when it has failed or could not be ended
// cleanly, 2 when a flag is wrong and 130 when it was interrupted.
package main
