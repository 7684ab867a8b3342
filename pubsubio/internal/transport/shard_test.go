package transport

import (
	"context"
	"net"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// frontEndStreams is how many streams a front end of the service admits at once
// on a connection.
const frontEndStreams = 100

// frontEnd answers a streaming pull with one message and keeps it open, and
// acknowledges anything.
type frontEnd struct {
	pubsubpb.UnimplementedSubscriberServer
}

func (frontEnd) StreamingPull(s pubsubpb.Subscriber_StreamingPullServer) error {
	if err := s.Send(&pubsubpb.StreamingPullResponse{}); err != nil {
		return err
	}
	<-s.Context().Done()
	return s.Context().Err()
}

func (frontEnd) Acknowledge(context.Context, *pubsubpb.AcknowledgeRequest) (*emptypb.Empty, error) {
	return new(emptypb.Empty), nil
}

func serveFrontEnd(t *testing.T) options.Connection {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.MaxConcurrentStreams(frontEndStreams))
	pubsubpb.RegisterSubscriberServer(srv, frontEnd{})
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(lis) }()
	t.Cleanup(func() { srv.Stop(); <-served })
	return options.Connection{EmulatorEndpoint: lis.Addr().String()}
}

// All streams and all acknowledgements of a process shared one connection. From
// the hundredth stream on, further streams and every acknowledgement waited for
// a stream to end: for ever.
func TestDial_StreamsBeyondAFrontEndsLimitBlockNothing(t *testing.T) {
	c := serveFrontEnd(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only a failing test reaches it
	defer cancel()
	for i := range 2*frontEndStreams + 1 {
		stream, err := mustDial(t, c, Pulling).Subscriber().StreamingPull(ctx)
		if err != nil {
			t.Fatalf("open stream %d: %v", i, err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
	if _, err := mustDial(t, c, Settling).Subscriber().Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{}); err != nil {
		t.Fatalf("acknowledge beside the streams: %v", err)
	}
}

func TestDial_FillsAConnectionBeforeItMakesAnother(t *testing.T) {
	c := options.Connection{EmulatorEndpoint: "127.0.0.1:1"}
	var conns []*Conn
	for range Pulling.holds() + 1 {
		conns = append(conns, mustDial(t, c, Pulling))
	}
	first, last := conns[0], conns[len(conns)-1]
	if before := conns[len(conns)-2]; before.ClientConn() != first.ClientConn() {
		t.Error("a connection with room was not used")
	}
	if last.ClientConn() == first.ClientConn() {
		t.Errorf("%d streams share a connection", len(conns))
	}
	if err := conns[1].Close(); err != nil {
		t.Fatal(err)
	}
	if again := mustDial(t, c, Pulling); again.ClientConn() != first.ClientConn() {
		t.Error("the room that a Close has made was not used")
	}
}

// A reader of several streams keeps them on one connection, and never more on it
// than a front end admits.
func TestDialStreams_TakeTheRoomOfThatMany(t *testing.T) {
	c := options.Connection{EmulatorEndpoint: "127.0.0.1:1"}
	of := func(n int) *Conn {
		t.Helper()
		conn, err := DialStreams(c, n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	first, second := of(80), of(20)
	if first.ClientConn() == second.ClientConn() {
		t.Error("100 streams share a connection")
	}
	if of(10).ClientConn() != first.ClientConn() {
		t.Error("the room that was left was not used")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if of(80).ClientConn() != first.ClientConn() {
		t.Error("the room that a Close has made was not used")
	}
	for _, n := range []int{0, MaxStreams + 1} {
		if _, err := DialStreams(c, n); err == nil {
			t.Errorf("%d streams were promised a connection", n)
		}
	}
}
