package pubsubtest

import (
	"net"
	"sync"
)

// listened holds every address at which this process has listened. The system hands
// out a port again once it is free: a client that an earlier test has left behind would
// find the next server there, and take its messages.
var listened addresses

type addresses struct {
	mu   sync.Mutex
	seen map[string]bool
}

// fresh returns a listener of listen whose address none had before. An address that is
// asked for by its port stays what it is.
func (a *addresses) fresh(listen func() (net.Listener, error)) (net.Listener, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var before []net.Listener // While they listen, the system cannot hand their ports out again.
	defer func() {
		for _, lis := range before {
			_ = lis.Close()
		}
	}()
	for {
		lis, err := listen()
		if err != nil {
			return nil, err
		}
		addr := lis.Addr().String()
		if !a.seen[addr] {
			if a.seen == nil {
				a.seen = make(map[string]bool)
			}
			a.seen[addr] = true
			return lis, nil
		}
		before = append(before, lis)
	}
}

// listen listens at a host:port. Where the port is zero it is a free one, at which no
// server of this process has listened before.
func listen(addr string) (net.Listener, error) {
	open := func() (net.Listener, error) { return net.Listen("tcp", addr) }
	if _, port, err := net.SplitHostPort(addr); err != nil || port != "0" {
		return open()
	}
	return listened.fresh(open)
}
