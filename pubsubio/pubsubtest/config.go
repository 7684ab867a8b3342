package pubsubtest

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// Unlimited is the value of a Config field that sets no bound.
const Unlimited = -1

// eventsInTests is how many events a server of New keeps: enough for a test of
// tens of thousands of messages, little enough to stay below 100 MB.
const eventsInTests = 1 << 18

// Config says how a server is started. The zero value is a server on a free
// loopback port that counts, but keeps neither events nor published messages.
type Config struct {
	// Addr is where to listen, as host:port. The default is 127.0.0.1:0, a free
	// loopback port, at which no server of this process has listened before: a client
	// that an earlier test left behind does not find it. The server has no
	// authentication: keep it on loopback.
	Addr string

	// Events is how many of the latest events Events returns, or Unlimited.
	// Zero keeps none, which costs nothing. New sets 262,144.
	//
	// An event holds on to the payload of its message.
	Events int

	// KeepPublished is how many of the latest messages of each topic Messages
	// returns, or Unlimited. Zero keeps none: a message is let go as soon as
	// every subscription has it acknowledged. New sets Unlimited.
	KeepPublished int

	// LeaseSecond is how long one second of a lease lasts. The default is one
	// second. With 10 ms, an acknowledgement deadline of 10 s lapses after 100 ms.
	LeaseSecond time.Duration

	// IgnoreStaleAcks makes an acknowledgement id of an earlier delivery of a
	// message do nothing. By default it acknowledges the message, unless the
	// message already is: the service does so where it can, without promising it.
	IgnoreStaleAcks bool

	// AckIDBytes is the least length of an acknowledgement id, in bytes. The
	// default is as short as possible, about 10. The service's have grown past
	// 200: a client that sizes its requests by count shows it there.
	AckIDBytes int

	// HoldKeys sends of an ordering key one batch at a time: what follows waits until all
	// of it is acknowledged or returned, as the service does in practice without
	// promising it. By default what follows goes to the same client at once.
	HoldKeys bool

	// MaxConcurrentStreams is how many calls may be under way at once on one
	// connection; further ones wait for one of them to end. A streaming pull
	// counts for as long as it is open. The default is 100, as a front end of the
	// service; [Unlimited] sets no bound.
	MaxConcurrentStreams int
}

// frontEndStreams is what a front end of the service admits on a connection.
const frontEndStreams = 100

func (c Config) withDefaults() Config {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if c.LeaseSecond == 0 {
		c.LeaseSecond = time.Second
	}
	if c.MaxConcurrentStreams == 0 {
		c.MaxConcurrentStreams = frontEndStreams
	}
	return c
}

func (c Config) validate() error {
	var faults []error
	if c.Events < Unlimited {
		faults = append(faults, fmt.Errorf("Events is %d: want a count, 0 or Unlimited", c.Events))
	}
	if c.KeepPublished < Unlimited {
		faults = append(faults, fmt.Errorf("KeepPublished is %d: want a count, 0 or Unlimited", c.KeepPublished))
	}
	if c.LeaseSecond < time.Millisecond {
		faults = append(faults, fmt.Errorf("LeaseSecond is %v: want at least 1ms", c.LeaseSecond))
	}
	if c.AckIDBytes < 0 || c.AckIDBytes > maxAckIDBytes {
		faults = append(faults, fmt.Errorf("AckIDBytes is %d: want 0 to %d", c.AckIDBytes, maxAckIDBytes))
	}
	if c.MaxConcurrentStreams < Unlimited {
		faults = append(faults, fmt.Errorf("MaxConcurrentStreams is %d: want a count, 0 or Unlimited", c.MaxConcurrentStreams))
	}
	return errors.Join(faults...)
}

// New starts a server on a free loopback port and closes it when the test ends.
// It keeps events and published messages; adjust may change that and the rest of
// its configuration. A server that cannot start ends the test.
func New(t testing.TB, adjust ...func(*Config)) *Server {
	t.Helper()
	cfg := Config{Events: eventsInTests, KeepPublished: Unlimited}
	for _, f := range adjust {
		f(&cfg)
	}
	srv, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}
