// Package dlq says what a dead-letter queue is to a transform: where the records
// go that can never succeed, with all that is needed to look at them and to try
// them again.
//
// # Queues
//
// A [Queue] is a configuration: a plain value that a user puts into a transform's
// settings, as sink.SendTo does. It travels to the workers as JSON, so its type is
// registered in init with [Register]. A worker opens a [Writer] for each bundle
// that has something to say, offers it a [Letter] for each failure, and lets the
// bundle succeed only once the writer's Flush has returned.
//
//	func init() { dlq.Register[fileQueue]() }
//
// # Guarantees
//
// Delivery is at least once: a letter whose Flush has returned nil is durable. A
// bundle that fails drops its writer and is run again by its runner, so that its
// letters may come twice. Letters of one bundle are offered in the order in which
// their records failed; nothing is promised between bundles.
//
// # Goroutines and locks
//
// The package starts no goroutine. Its one lock is that of the registry of types,
// which is filled in init.
package dlq
