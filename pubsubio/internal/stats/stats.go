// Package stats counts, while a pipeline runs, what its reads and writes did in
// this process. Beam's own metrics say the same on every runner, but only once
// a bundle has reported; these can be read at any time by a program that runs
// its pipeline in its own process, and they count what happens between bundles.
package stats

import (
	"sync"
	"sync/atomic"
)

// A Sink counts the records of one Write; a record counts once, however often
// it is sent again.
type Sink struct {
	Published atomic.Int64 // answered by the service
	Bytes     atomic.Int64 // of the published, serialized
	Skipped   atomic.Int64 // for which the encoder returned nil
	Failed    atomic.Int64 // refused by a rule of ours, by the encoder or by the service

	Errors             atomic.Int64 // attempts at requests that failed, for each bundle in the request
	TopicsCreated      atomic.Int64
	ShutdownsAbandoned atomic.Int64 // publishers that were not released in time

	// Now, in the worker's pool.
	InFlight atomic.Int64 // messages taken in and not yet answered
	Parked   atomic.Int64 // of those, how many wait for a missing topic

	DeadLetters atomic.Int64 // failed records that a dead-letter queue was handed
	Dropped     atomic.Int64 // failed records that were dropped
	DropLogged  atomic.Int64 // when that was last logged, in Unix nanoseconds
}

// The registries of this process: a Read or a Write finds its counters by the
// nonce it was given at construction, on whichever bundle or DoFn instance. They
// hold a few words for each Read or Write that ever ran in the process.
var sources, sinks sync.Map

// ForSource returns the counters of the Read with that nonce.
func ForSource(nonce string) *Source {
	v, ok := sources.Load(nonce)
	if !ok {
		v, _ = sources.LoadOrStore(nonce, new(Source))
	}
	return v.(*Source)
}

// ForSink returns the counters of the Write with that nonce.
func ForSink(nonce string) *Sink {
	v, ok := sinks.Load(nonce)
	if !ok {
		v, _ = sinks.LoadOrStore(nonce, new(Sink))
	}
	return v.(*Sink)
}
