package dlq

import (
	"context"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A Letter is one record that failed for what it is: no retry would help it.
type Letter struct {
	// Connector is the kind of transform that gave the record up, by the namespace of
	// its metrics: "pubsubio.sink", "pubsubio.source", or a name of one's own.
	Connector string

	// Destination is where the record was to go: for a sink, the topic's full name.
	// For a source it is the full name of the subscription that the message came from.
	Destination string

	// Message is the whole message that was refused, with its attributes and its
	// ordering key. Nil where the record never became one; Record holds it then.
	Message *message.Message

	// Record is the record in Beam's coding of its type, where Message is nil.
	// beam.NewElementDecoder of that type reads it.
	Record []byte

	// Error says what went wrong, in one line or several, as the transform says it
	// elsewhere. It names no payload, except where a function of the user put one
	// into its own error. It may be long, and need not be valid UTF-8.
	Error string

	// Attempts is how often a request with the message was sent. Zero where none
	// was: a rule of the service, or a function of the user, refused the record.
	Attempts int

	// Time is when the record failed, by the clock of the worker.
	Time time.Time

	// EventTime is the record's own, in the pipeline.
	EventTime time.Time
}

// A Queue is the configuration of a dead-letter queue. Its type is a plain value
// that survives JSON and was given to [Register].
//
// Its methods may be called from several goroutines at once. It may be a [Checker]
// and a [TopicQueue], too.
type Queue interface {
	// Validate returns every fault of the configuration, joined, each naming the
	// field, the value and the rule. It makes no call. A transform calls it while a
	// pipeline is built.
	Validate() error

	// Open returns a writer for one bundle. owner names the transform, the same for
	// all of its bundles on every worker, so that bundles may share what is costly,
	// as a connection, and two transforms share nothing. ctx is the bundle's. An
	// error fails the bundle.
	//
	// A bundle without failures opens none.
	Open(ctx context.Context, owner string) (Writer, error)

	// Close lets go of what the queue keeps in this process for owner beyond its
	// bundles: connections, buffers. It returns once they are closed, and does
	// nothing while a writer is open or where nothing was ever opened. On most
	// runners nobody calls it: a queue ends by itself what has been unused for long.
	Close(owner string) error
}

// A Writer takes the letters of one bundle. Offer and Flush are called by the
// bundle's goroutine, one at a time.
type Writer interface {
	// Offer takes a letter, which is the writer's to keep, and may wait for room but
	// not for ever. It may return before the letter is durable. An error fails the
	// bundle.
	Offer(ctx context.Context, l Letter) error

	// Flush returns nil once every letter that was offered is durable, and then ends
	// the writer. It is called once, at the end of the bundle, when all that the
	// transform itself had to do is done; it waits for a bounded time. An error fails
	// the bundle.
	Flush(ctx context.Context) error

	// Drop ends the writer of a bundle that has failed: what it has not sent yet it
	// need not send. It returns at once and makes no call. It comes after Offer and
	// Flush have returned, perhaps on another goroutine, perhaps twice, and does
	// nothing after a successful Flush.
	Drop()
}
