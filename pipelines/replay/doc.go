// Replay publishes dead letters again: it reads the subscription of a dead-letter topic,
// and publishes the message in each letter to the topic that it was to go to.
//
//	replay --dead_letter_subscription=projects/p/subscriptions/dead-letters --dry_run
//	replay --dead_letter_subscription=projects/p/subscriptions/dead-letters \
//	       --error_contains="schema" --given_up_after=2026-11-30T12:00:00Z
//
// It ends when no letter has come for thirty seconds (--stop_when_idle), or only new ones, and
// prints how many went where, and why the others were left.
//
// # Which letters
//
// --destination, --error_contains, --given_up_after and --given_up_before choose; all
// that are given must hold. A letter that is not chosen stays in the subscription. So
// does one that cannot be replayed:
//
//   - whose topic does not exist, or may not be published to;
//   - that came from a subscription, because a message could not be decoded or Pub/Sub
//     itself has forwarded it, unless --output_topic says where to: published to the
//     subscription's topic it would reach all other subscriptions as well;
//   - that holds an empty message, or a record which never became one;
//   - whose message has a hundred attributes, as nothing would count how often it fails;
//   - that came in parts, as one that is too large for one message does, of which others are
//     not there;
//   - that has been a dead letter --max_hops times;
//   - that is no dead letter at all.
//
// What is left is kept from other subscribers while replay runs, and returned at its end, or
// twenty seconds after it is killed. Each run, a dry one too, is a delivery attempt to a
// dead-letter policy of the subscription itself, if it has one.
//
// Letters that the service has got since replay began are new, and left: so what fails again
// is not replayed again by the same run, and a queue that a pipeline writes to, all the time or
// now and then, does not keep it from ending.
//
// # Dry run
//
// --dry_run reads the subscription, publishes and acknowledges nothing, and prints where
// each letter would go, or why it would be left.
//
// # What fails again
//
// A message that the service refuses once more goes back to the dead-letter topic in a
// new letter, with one more hop. --dead_letter_topic names another topic for these, which
// must have a subscription.
//
// # Guarantees
//
// A letter is acknowledged only after its message is published, or after the letter that
// follows it is. Killed at any time and run again, replay publishes each message at least
// once: those that were published and not acknowledged yet come twice. Ordering keys are
// kept; the order of a key's messages is not known any more.
//
// Of a letter in parts the last is acknowledged with its message and the others at the end, once
// everything is published, after an interrupt as well. For that there is what is left of
// --max_duration, fifteen seconds at least, and fifteen seconds from an interrupt on. If replay
// fails or is killed in between, or if another reader has them then, which is an error, they stay:
// nothing in them is not published, and no later replay takes them. They go at the end of the
// subscription's retention, or by hand:
// "gcloud pubsub subscriptions pull" shows the attribute dlq-id, which says of which letter, and
// the id that "gcloud pubsub subscriptions ack --ack-ids" takes.
//
// It runs on prism, Beam's local runner: what is left is kept track of in its own
// process.
//
// # Exit codes
//
//	0    it has ended; what was left or failed again is in the table and in the report
//	1    it has failed, or parts of letters stay that were published
//	2    a flag is wrong
//	130  it was interrupted; what was published is acknowledged
package main
