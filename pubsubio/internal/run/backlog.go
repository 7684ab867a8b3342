package run

import "sync/atomic"

// What a run's keyed writes may have taken in and not yet published before its
// reads pause. A local runner queues in front of a keyed step without a bound of
// its own, so this is the bound; a bundle that is under way when it is reached may
// pass it.
const (
	backlogMessages = 20_000
	backlogBytes    = 64 << 20
)

// A Backlog is what the keyed writes of a run have taken in, in this process, and
// not yet published: it waits in a shuffle of the runner. Methods of a nil Backlog
// do nothing.
type Backlog struct{ messages, bytes atomic.Int64 }

// Add notes that messages went into the shuffle, with a bundle that has ended well;
// with negative numbers, that they were published.
func (b *Backlog) Add(messages, bytes int64) {
	if b != nil {
		b.messages.Add(messages)
		b.bytes.Add(bytes)
	}
}

// Full reports whether a read should emit nothing for now.
func (b *Backlog) Full() bool {
	return b != nil && (b.messages.Load() >= backlogMessages || b.bytes.Load() >= backlogBytes)
}

// A Joiner is a DoFn of a write that has to know its run on prism, before the
// pipeline is submitted. On other runners it is told of none: a job that is rolled
// back would count what it does again.
type Joiner interface{ JoinRun(id string) }
