package transport

import (
	"fmt"
	"sync"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A Direction says what a connection is for. No two share one: a publisher's
// requests must not queue behind a backlog that is being pulled, and a front end
// of the service admits about a hundred streams at once on a connection, after
// which a call waits for one to end. Streaming pulls do not end, so that a call
// beside them could wait for ever.
type Direction int

const (
	// Publishing is for publish requests and calls about topics.
	Publishing Direction = iota
	// Pulling is for streaming pulls: one for each Dial, or as many as DialStreams
	// was asked for. At most [MaxStreams] share a connection.
	Pulling
	// Settling is for the calls about a subscription that are answered at once:
	// acknowledge, extend, return.
	Settling
)

func (d Direction) String() string {
	switch d {
	case Pulling:
		return "pulling"
	case Settling:
		return "settling"
	default:
		return "publishing"
	}
}

// MaxStreams is how many streams share a connection at most. It is under the
// hundred of a front end: a stream that is being replaced counts until the server
// has seen its end.
const MaxStreams = 90

// holds is how many users may share a connection of d; zero is any number.
func (d Direction) holds() int {
	if d == Pulling {
		return MaxStreams
	}
	return 0
}

// A Conn is one user's hold on a shared connection. Its methods may be called
// from several goroutines.
type Conn struct {
	shared *shared
	close  func() error
}

// Dial returns a connection of c for d, made at the first call and shared by all
// that ask for the same until each has called Close; of Pulling, by 90 at most.
// Whoever dials for Pulling keeps one stream open on what it gets, not more.
//
// It reads the credentials but connects lazily: a server that cannot be reached
// fails the calls, as Unavailable, and not Dial. An error names neither the path
// nor the contents of a key file.
func Dial(c options.Connection, d Direction) (*Conn, error) { return dialShared(c, d, 1) }

// DialStreams is Dial for Pulling of somebody who keeps n streams open, 1 to
// [MaxStreams]: they share one connection.
func DialStreams(c options.Connection, n int) (*Conn, error) {
	if n < 1 || n > MaxStreams {
		return nil, fmt.Errorf("transport: %d streams on one connection: must be 1 to %d", n, MaxStreams)
	}
	return dialShared(c, Pulling, n)
}

func dialShared(c options.Connection, d Direction, holds int) (*Conn, error) {
	key := registryKey{c, d}
	s := connections.acquire(key, holds)
	s.dialOnce.Do(func() { s.conn, s.err = dial(c, d) })
	if s.err != nil {
		// The next Dial tries again: a key file may appear later.
		_ = connections.release(key, s, holds)
		return nil, s.err
	}
	return &Conn{
		shared: s,
		close:  sync.OnceValue(func() error { return connections.release(key, s, holds) }),
	}, nil
}

// Subscriber returns the stub for subscriptions and pulling.
func (c *Conn) Subscriber() pubsubpb.SubscriberClient {
	return pubsubpb.NewSubscriberClient(c.shared.conn)
}

// ClientConn returns the connection below the stubs, for calls with a codec of
// the caller's own. It must not be used after Close.
func (c *Conn) ClientConn() grpc.ClientConnInterface { return c.shared.conn }

// Close gives the connection back. The last user's Close fails the calls that
// are still under way. It may be called twice.
func (c *Conn) Close() error { return c.close() }
