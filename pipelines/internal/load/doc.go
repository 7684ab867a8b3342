// Package load is what loadgen and verify agree on: a stream of numbered messages, how
// each of them looks, and the report of what was published.
//
// A message is known by its run, its key and its number within the key, which it
// carries in attributes: these pass a relay, a dead-letter queue and a replay as they
// are, while a payload is a pipeline's to change. Everything about a message but the
// time of its publishing follows from its place in the stream, so that a bundle that
// is run again publishes the same messages, and so that a report of a few numbers
// tells which messages there must be.
package load
