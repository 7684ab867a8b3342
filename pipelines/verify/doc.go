// Verify reads what loadgen has published, wherever it went in between, and says what
// became of it:
//
//	loadgen --topic=projects/p/topics/input --messages=10000 --rate=5000 --report=sent.json
//	relay --input_subscriptions=projects/p/subscriptions/input --output_topic=projects/p/topics/output \
//	      --stop_when_idle=5s
//	verify --subscription=projects/p/subscriptions/output --expected=sent.json --plot=latency.svg
//
// It acknowledges what it reads. It knows a message by its run, its key and its number,
// not by counting: a copy never stands in for one that is lost.
//
// # What it reports
//
//	lost        expected, and not arrived
//	duplicated  arrived once more: Pub/Sub delivers at least once
//	reordered   arrived after a later message of its key; first copies only
//	poison      no JSON, as loadgen --poison makes them; a pipeline that sends these to
//	            a dead-letter queue has not lost them, so they are lost only beside
//	            --require_poison
//	foreign     of another run, or of nobody: read, acknowledged and not counted
//	latency     from publishing to arriving here, of first copies, by the clocks of the
//	            two machines
//
// What is expected is told by the report of loadgen (--expected), or by their number
// alone (--expect). Without either, a number that is missing below the highest of its
// key is lost.
//
// # When it ends
//
// Once everything expected has arrived, and no copy has come for --linger after that;
// or when nothing at all has come for --stop_when_idle, from its start on; or after
// --max_duration. An interrupt (SIGINT, SIGTERM) ends it, too: what had not arrived by
// then is not called lost.
//
// With --ordering it reads each key in order, which needs a subscription with message
// ordering, and a reordered message is a failure.
//
// Whether --report and --plot can be written is tried before it begins. Where nothing has
// arrived there is nothing to draw: a plot of an earlier run is removed, and stderr tells so.
//
// It runs on prism, Beam's local runner: it counts in its own process, a bit a message,
// so that memory stays bounded; workers elsewhere would each know a part.
//
// # Exit codes
//
//	0    nothing is lost, and nothing reordered beside --ordering
//	1    something is, or verify has failed
//	2    a flag is wrong
//	130  it was interrupted
package main
