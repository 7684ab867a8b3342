package stats

import (
	"sync/atomic"

	"google.golang.org/grpc/codes"
)

// A Source counts the messages of one Read.
type Source struct {
	Received     Count // by any reader, redeliveries included
	Emitted      Count // decoded and handed downstream
	Acknowledged Count // acknowledgements that the service answered
	Returned     Count // handed back unacknowledged
	Redelivered  Count // came again while still held, and were not emitted twice
	Copies       Count // had the id of another message, and were not emitted
	Lapsed       Count // dropped from the buffer because their lease had ended
	// LapsedEmitted had been emitted when their lease ended. They are acknowledged all
	// the same, and may be delivered again.
	LapsedEmitted Count
	// Unacknowledged were committed, and could not be acknowledged before their
	// reader ended: they come again.
	Unacknowledged Count

	DecodeFailures      Count // messages that the decoder refused, or that had no event time
	Dropped             Count // of those, dropped by the policy
	Nacked              Count // of those, returned by the policy; in Returned, too, once that is answered
	Left                Count // of those, left for others by the policy
	DeadLetters         Count // of those, handed to a dead-letter queue
	TimestampsInSeconds Count // event times that look like seconds

	// Which signal committed messages, before they were acknowledged.
	ByFinalization, ByResume, ByPipeline Count
	Commits                              Latency // from the end of a bundle that emitted to its commit

	StreamsReopened    Count // that had worked and ended
	SplitsParked       Count
	ShutdownsAbandoned Count // readers that did not close in time
	Errors             Codes // calls and openings of streams that failed

	DropLogged atomic.Int64 // when a drop was last logged, in Unix nanoseconds

	// Created is set once a startup in this process has created subscriptions of the
	// Read, or may have: their deletion asks.
	Created atomic.Bool

	// Now, of all readers in this process.
	PendingAcks   atomic.Int64 // messages emitted and not acknowledged, or returned and not answered, when their reader last reported
	Buffered      atomic.Int64 // messages received and not emitted
	BufferedBytes atomic.Int64
	OpenStreams   atomic.Int64
	ParkedSplits  atomic.Int64
}

// A Count only grows. Beam's counters, which can be moved within a bundle only,
// follow it.
type Count struct {
	atomic.Int64
	taken atomic.Int64
}

// Take returns by how much the count has grown since the last Take.
func (c *Count) Take() int64 {
	for {
		taken, now := c.taken.Load(), c.Load()
		if now <= taken {
			return 0
		}
		if c.taken.CompareAndSwap(taken, now) {
			return now - taken
		}
	}
}

// Codes counts by the code of a status.
type Codes [codes.Unauthenticated + 1]Count

// Add counts one of a code; one that gRPC does not have is Unknown to its clients.
func (c *Codes) Add(code codes.Code) {
	if int(code) >= len(c) {
		code = codes.Unknown
	}
	c[code].Add(1)
}
