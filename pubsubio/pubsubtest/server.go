package pubsubtest

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress what they publish
	"google.golang.org/grpc/keepalive"
)

// Sizes of the transport: a publish request fits a stream's window, so that a
// busy publisher does not wait for window updates.
const (
	streamWindow     = 4 << 20
	connectionWindow = 16 << 20
	ioBuffer         = 128 << 10
	// maxReceive leaves room above the service's limit: a request that is too
	// large is to be refused by the rule, not by the transport.
	maxReceive = 64 << 20
)

// A Server is a Pub/Sub server in the process. Its methods may be called from
// several goroutines at once.
type Server struct {
	// Lock order: topic.mu comes before subscription.mu, and both before those of
	// the event log and the notifier. resources.mu comes before topic.mu. Those of
	// the orders, the meter and the connections are held with no other.

	cfg      Config
	endpoint string

	resources resources
	methods   map[string]*method
	orders    orders
	load      meter
	conns     connections
	events    *eventLog // nil when off
	changes   notifier
	lastID    atomic.Uint64 // of a message
	streams   atomic.Uint64 // number of the latest stream
	silent    atomic.Bool   // pings of streams are not answered

	// serving counts the goroutines that end with the gRPC server: the one that
	// accepts, and those that handlers start.
	serving sync.WaitGroup

	mu      sync.Mutex     // guards all below
	lis     net.Listener   // nil while stopped
	grpc    *grpc.Server   // that takes new connections; nil while stopped
	leaving []*grpc.Server // that GoAway has replaced since the start
	closed  bool
}

// Start starts a server that lives until Close. The error joins every fault of
// cfg, or says why its address cannot be listened on.
func Start(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("pubsubtest: %w", err)
	}
	s := &Server{cfg: cfg, events: newEventLog(cfg.Events), methods: newMethods()}
	s.resources.init()
	s.changes.init()
	s.load.init()
	s.conns.init()
	lis, err := listen(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("pubsubtest: %w", err)
	}
	s.endpoint = lis.Addr().String()
	s.serve(lis)
	return s, nil
}

// Endpoint returns the host:port at which the server listens. It stays the same
// over Stop, Resume and Restart.
func (s *Server) Endpoint() string { return s.endpoint }

// Stop ends every call and stream and closes the port, as a server that dies
// does. Topics, subscriptions, messages and leases stay, and leases run on.
// Stopping a stopped server does nothing.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopLocked()
}

// Resume listens again, on the same port, after Stop. It fails when another
// process has taken the port, or after Close.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("pubsubtest: resume: the server is closed")
	case s.grpc != nil:
		return nil
	}
	lis, err := net.Listen("tcp", s.endpoint)
	if err != nil {
		return fmt.Errorf("pubsubtest: resume: %w", err)
	}
	s.serve(lis)
	return nil
}

// Restart is Stop followed by Resume.
func (s *Server) Restart() error {
	s.Stop()
	return s.Resume()
}

// GoAway tells the clients on all open connections to open no further calls on
// them, as a front end of the service that is about to be replaced: they get a
// GOAWAY, connect again and go on there, while open calls and streams stay on the
// old connection until they end. It does not wait for that. On a stopped server
// it does nothing.
func (s *Server) GoAway() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grpc == nil {
		return
	}
	old := s.grpc
	s.leaving = append(s.leaving, old)
	s.serveLocked()
	s.serving.Go(old.GracefulStop) // ends with the last call on it, or with Stop
}

// Close stops the server for good, and its leases with it. What it counted and
// logged can still be read. Closing twice does nothing.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.stopLocked()
	s.mu.Unlock()
	for _, sub := range s.resources.allSubscriptions() {
		sub.close()
	}
}

// serve starts to serve what connects to lis, until stopLocked, which waits for it.
func (s *Server) serve(lis net.Listener) {
	s.lis = lis
	s.serving.Go(func() { s.conns.accept(lis) })
	s.serveLocked()
}

// serveLocked makes a gRPC server that takes the connections to come.
func (s *Server) serveLocked() {
	opts := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(maxReceive),
		grpc.InitialWindowSize(streamWindow),
		grpc.InitialConnWindowSize(connectionWindow),
		grpc.ReadBufferSize(ioBuffer),
		grpc.WriteBufferSize(ioBuffer),
		// Clients of the service ping often; that is no offence here.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
	if n := s.cfg.MaxConcurrentStreams; n != Unlimited {
		opts = append(opts, grpc.MaxConcurrentStreams(uint32(n)))
	}
	g := grpc.NewServer(opts...)
	g.RegisterService(s.publisherService(), nil)
	g.RegisterService(s.subscriberService(), nil)
	g.RegisterService(s.iamService(), nil)
	s.grpc = g
	door := s.conns.door(s.lis.Addr())
	s.serving.Go(func() { _ = g.Serve(door) }) // ends with nil after Stop
}

func (s *Server) stopLocked() {
	if s.grpc == nil {
		return
	}
	_ = s.lis.Close() // the port is free, whatever it says
	for _, g := range append(s.leaving, s.grpc) {
		g.Stop() // waits for the handlers: nothing is added to serving after it
	}
	s.serving.Wait()
	s.lis, s.grpc, s.leaving = nil, nil, nil
}
