package pubsubtest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/peer"
)

// connections are those of a server. They outlive its gRPC servers: GoAway
// replaces one by the next while the port stays open.
type connections struct {
	accepted chan net.Conn // to the gRPC server of the moment

	mu   sync.Mutex // guards all below
	open map[*conn]struct{}
	most int
}

func (cs *connections) init() {
	cs.accepted = make(chan net.Conn)
	cs.open = make(map[*conn]struct{})
}

// Connections returns how many connections are open now, and the most that ever
// were at once. A connection whose client has gone is open until the server
// notices.
func (s *Server) Connections() (open, most int) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	return len(s.conns.open), s.conns.most
}

// BreakConnections breaks all open connections, as [Disconnect] does that of a
// call, and returns how many there were. The port stays open.
func (s *Server) BreakConnections() int {
	s.conns.mu.Lock()
	var open []*conn
	for c := range s.conns.open {
		open = append(open, c)
	}
	s.conns.mu.Unlock()
	for _, c := range open {
		c.sever()
	}
	return len(open)
}

// Silence makes all open connections black holes, as a network that loses every
// packet: what clients send is lost and nothing comes back, until they give the
// connection up, or Stop ends it. It returns how many there were. Those to come
// work.
func (s *Server) Silence() int {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	for c := range s.conns.open {
		c.silent.Store(true)
	}
	return len(s.conns.open)
}

// accept hands on what connects until lis is closed. What nobody takes any more
// is closed then.
func (cs *connections) accept(lis net.Listener) {
	var handing sync.WaitGroup
	defer handing.Wait()
	closed := make(chan struct{})
	defer close(closed)
	for {
		accepted, err := lis.Accept()
		if err != nil {
			return
		}
		c := cs.opened(accepted)
		handing.Go(func() { // ends with a door that is open, or with this
			select {
			case cs.accepted <- c:
			case <-closed:
				_ = c.Close()
			}
		})
	}
}

func (cs *connections) opened(accepted net.Conn) *conn {
	c := &conn{Conn: accepted, of: cs}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.open[c] = struct{}{}
	cs.most = max(cs.most, len(cs.open))
	return c
}

// A conn is a connection that is counted, and that its calls can find.
type conn struct {
	net.Conn
	of     *connections
	silent atomic.Bool
}

// Read is for gRPC.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for err == nil && c.silent.Load() {
		n, err = c.Conn.Read(b) // lost
	}
	return n, err
}

// Write is for gRPC.
func (c *conn) Write(b []byte) (int, error) {
	if c.silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Close is for gRPC.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// RemoteAddr is for gRPC, which gives it to the calls on the connection.
func (c *conn) RemoteAddr() net.Addr { return connAddr{Addr: c.Conn.RemoteAddr(), conn: c} }

// sever ends the connection without a farewell.
func (c *conn) sever() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a reset; else it ends all the same
	}
	_ = c.Close()
}

// A connAddr is an address that leads back to its connection.
type connAddr struct {
	net.Addr
	conn *conn
}

// breakConnection severs the connection of the call with the context ctx.
func breakConnection(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(connAddr); ok {
			a.conn.sever()
		}
	}
}

// A door is where one gRPC server takes connections, until it closes the door.
type door struct {
	conns  *connections
	addr   net.Addr
	once   sync.Once
	closed chan struct{}
}

func (cs *connections) door(addr net.Addr) *door {
	return &door{conns: cs, addr: addr, closed: make(chan struct{})}
}

// Accept is for gRPC.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns.accepted:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close is for gRPC.
func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

// Addr is for gRPC.
func (d *door) Addr() net.Addr { return d.addr }
