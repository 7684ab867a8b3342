// Windowcount counts the messages of subscriptions in windows of their event time, for
// each value of an attribute or each ordering key:
//
//	windowcount --input_subscriptions=projects/p/subscriptions/orders --by_attribute=region --window=1m
//	windowcount --input_subscriptions=projects/p/subscriptions/orders --by_ordering_key \
//	            --window=10m --every=1m --output_topic=projects/p/topics/counts --plot=counts.svg
//
// On a terminal it shows a table that lives: the latest windows and the labels that
// count the most, the rest together. Elsewhere it tells in a line what each window has
// counted. At its end it prints the table, and draws it beside --plot.
//
// It goes on until it is interrupted (SIGINT, SIGTERM), or until --max_messages,
// --max_duration or --stop_when_idle ends it. Then the windows that are open count what
// they have. A second interrupt kills it.
//
// # Windows
//
// --window alone cuts time into windows of that length. With --every a window of that
// length begins that often, and a message counts in each window that it lies in. The
// event time is the publish time, or what an attribute says (--timestamp_attribute), as
// RFC 3339 or in milliseconds since the Unix epoch. --bad_timestamp says what becomes of a
// message that lacks the attribute, or has something else in it:
//
//	fail          windowcount ends, and the message stays in the subscription
//	drop          it is acknowledged and not counted; how many were is told at the end
//	publish_time  it counts by its publish time; how many did is told at the end
//
// A window counts once the watermark has passed its end: --watermark_lag after it, where
// nothing is waiting to be read.
//
// # Late messages
//
// A message that comes when its window has counted is late. --late says what becomes of
// it:
//
//	drop        it is not counted; how many were is told at the end
//	discard     up to --allowed_lateness, the window counts again, and publishes the
//	            late ones alone: who reads the counts adds them up
//	accumulate  up to --allowed_lateness, the window counts again, and publishes all of
//	            its messages: who reads the counts takes the last one
//
// # Output
//
// With --output_topic each count is published as JSON:
//
//	{"window_start":"2026-01-02T03:04:00Z","window_end":"2026-01-02T03:05:00Z","by":"region","label":"eu-west","count":1234}
//
// A message that has no such attribute, or no ordering key, counts under the empty
// label. Times are RFC 3339; beyond the years 0 to 9999 they have a sign and six digits for
// the year, as ISO 8601 writes them.
//
// Whether --report and --plot can be written is tried before it begins. Where no window has
// counted there is nothing to draw: a plot of an earlier run is removed, and stderr tells so.
//
// It runs on prism, Beam's local runner: the table and the plot are in its own process.
// Prism keeps windows in memory: if the process dies, what was acknowledged and had not
// been counted is gone.
//
// # Exit codes
//
//	0    it has ended
//	1    it has failed
//	2    a flag is wrong
//	130  it was interrupted; what it had read is counted
package main
