package check_test

import (
	"net"
	"path"
	"slices"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// A front stands before a server: it notes the calls that come, and knows what nobody
// but Resource Manager does, the permissions on projects.
type front struct {
	endpoint string
	grants   map[string][]string // by project; nil: it does not know
	behind   *grpc.ClientConn

	mu      sync.Mutex // guards methods
	methods []string
}

func newFront(t *testing.T, srv *pubsubtest.Server, grants map[string][]string) *front {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	behind, err := grpc.NewClient(srv.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	f := &front{endpoint: listener.Addr().String(), grants: grants, behind: behind}
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(f.handle))
	served := make(chan struct{})
	go func() { // Stop ends it.
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-served
		_ = behind.Close()
	})
	return f
}

// called returns the methods that were called, each once, sorted.
func (f *front) called() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := slices.Clone(f.methods)
	slices.Sort(names)
	return slices.Compact(names)
}

func (f *front) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	f.mu.Lock()
	f.methods = append(f.methods, path.Base(method))
	f.mu.Unlock()
	var request, response []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if f.grants != nil && method == "/google.cloud.resourcemanager.v3.Projects/TestIamPermissions" {
		return f.testPermissions(stream, request)
	}
	if err := f.behind.Invoke(stream.Context(), method, &request, &response, grpc.ForceCodecV2(rawCodec{})); err != nil {
		return err
	}
	return stream.SendMsg(&response)
}

func (f *front) testPermissions(stream grpc.ServerStream, request []byte) error {
	var asked pubsubpb.AcknowledgeRequest // which is on the wire what this call's is
	if err := proto.Unmarshal(request, &asked); err != nil {
		return err
	}
	answer := new(pubsubpb.PublishResponse)
	for _, p := range asked.GetAckIds() {
		if slices.Contains(f.grants[asked.GetSubscription()], p) {
			answer.MessageIds = append(answer.MessageIds, p)
		}
	}
	response, err := proto.Marshal(answer)
	if err != nil {
		return err
	}
	return stream.SendMsg(&response)
}

// A rawCodec leaves messages as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = rawCodec{}

// detach detaches sub from its topic, which no method of the server does.
func detach(t *testing.T, srv *pubsubtest.Server) {
	t.Helper()
	conn, err := grpc.NewClient(srv.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := pubsubpb.NewPublisherClient(conn).DetachSubscription(t.Context(), &pubsubpb.DetachSubscriptionRequest{Subscription: sub}); err != nil {
		t.Fatal(err)
	}
}
