package transport

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

const topic = "projects/p/topics/abc"

// fakePubSub keeps the last publish request and its headers, and streams one
// message of the size that the subscription's name asks for.
type fakePubSub struct {
	pubsubpb.UnimplementedPublisherServer
	pubsubpb.UnimplementedSubscriberServer
	publishes chan published
	pull      []byte
}

type published struct {
	bytes int
	meta  metadata.MD
}

func (f *fakePubSub) Publish(ctx context.Context, r *pubsubpb.PublishRequest) (*pubsubpb.PublishResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	f.publishes <- published{len(r.Messages[0].Data), md}
	return &pubsubpb.PublishResponse{MessageIds: []string{"1"}}, nil
}

func (f *fakePubSub) StreamingPull(s pubsubpb.Subscriber_StreamingPullServer) error {
	return s.Send(&pubsubpb.StreamingPullResponse{ReceivedMessages: []*pubsubpb.ReceivedMessage{{
		AckId: "a", Message: &pubsubpb.PubsubMessage{Data: f.pull},
	}}})
}

func serve(t *testing.T) (*fakePubSub, string) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.MaxRecvMsgSize(20 << 20))
	fake := &fakePubSub{publishes: make(chan published, 1)}
	pubsubpb.RegisterPublisherServer(srv, fake)
	pubsubpb.RegisterSubscriberServer(srv, fake)
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(lis) }()
	t.Cleanup(func() { srv.Stop(); <-served })
	return fake, lis.Addr().String()
}

func mustDial(t *testing.T, c options.Connection, d Direction) *Conn {
	t.Helper()
	conn, err := Dial(c, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func publish(ctx context.Context, c *Conn, data []byte) error {
	_, err := pubsubpb.NewPublisherClient(c.ClientConn()).Publish(ctx, &pubsubpb.PublishRequest{
		Topic: topic, Messages: []*pubsubpb.PubsubMessage{{Data: data}},
	})
	return err
}

func TestDial_TenMegabytesFitBothWays(t *testing.T) {
	fake, addr := serve(t)
	fake.pull = make([]byte, 10_000_000)
	c := options.Connection{EmulatorEndpoint: addr}
	if err := publish(t.Context(), mustDial(t, c, Publishing), make([]byte, 10_000_000)); err != nil {
		t.Fatal(err)
	}
	if got := (<-fake.publishes).bytes; got != 10_000_000 {
		t.Errorf("server got %d bytes", got)
	}
	stream, err := mustDial(t, c, Pulling).Subscriber().StreamingPull(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(r.ReceivedMessages[0].Message.Data); got != 10_000_000 {
		t.Errorf("pulled %d bytes", got)
	}
	if _, err := stream.Recv(); err == nil {
		t.Error("stream goes on")
	}
}

func TestWithTopic_SendsTheRoutingHeader(t *testing.T) {
	fake, addr := serve(t)
	conn := mustDial(t, options.Connection{EmulatorEndpoint: addr}, Publishing)
	if err := publish(WithTopic(t.Context(), "projects/ex.com:p/topics/a+b"), conn, []byte("x")); err != nil {
		t.Fatal(err)
	}
	meta := (<-fake.publishes).meta
	if got := meta.Get("x-goog-request-params"); len(got) != 1 || got[0] != "topic=projects%2Fex.com%3Ap%2Ftopics%2Fa%2Bb" {
		t.Errorf("x-goog-request-params = %q", got)
	}
	if got := meta.Get("x-goog-api-client"); len(got) != 1 || !strings.Contains(got[0], "beam-pubsub-go/"+version) {
		t.Errorf("x-goog-api-client = %q", got)
	}
	if got := meta.Get("user-agent"); len(got) != 1 || !strings.HasPrefix(got[0], userAgent) {
		t.Errorf("user-agent = %q", got)
	}
}

// A stray PUBSUB_EMULATOR_HOST would send a production job's messages to
// somebody's emulator, or a test's to another one.
func TestDial_IgnoresPubsubEmulatorHost(t *testing.T) {
	stray := listen(t)
	t.Setenv("PUBSUB_EMULATOR_HOST", stray.addr)
	for _, d := range []Direction{Publishing, Pulling, Settling} {
		t.Run(d.String()+"/emulator", func(t *testing.T) {
			fake, addr := serve(t)
			if err := publish(t.Context(), mustDial(t, options.Connection{EmulatorEndpoint: addr}, d), []byte("x")); err != nil {
				t.Fatal(err)
			}
			<-fake.publishes
		})
		t.Run(d.String()+"/service", func(t *testing.T) {
			regional := listen(t)
			conn := mustDial(t, options.Connection{Endpoint: regional.addr, ServiceAccountKeyFile: keyFile(t)}, d)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := publish(ctx, conn, []byte("x")); err == nil {
				t.Fatal("published to a server that speaks no TLS")
			}
			select {
			case first := <-regional.first:
				if first != 0x16 { // a TLS handshake record
					t.Errorf("first byte sent to the endpoint is %#x, not TLS", first)
				}
			case <-ctx.Done():
				t.Fatal("the endpoint was never contacted")
			}
		})
		t.Run(d.String()+"/global", func(t *testing.T) {
			conn := mustDial(t, options.Connection{ServiceAccountKeyFile: keyFile(t)}, d)
			if got := conn.shared.conn.Target(); got != globalEndpoint {
				t.Errorf("target %q, want %q", got, globalEndpoint)
			}
		})
	}
	if n := len(stray.first); n != 0 {
		t.Error("PUBSUB_EMULATOR_HOST was contacted")
	}
}

// A key file's path and contents end in logs that many can read.
func TestDial_KeyFileErrorsTellNeitherPathNorContents(t *testing.T) {
	for name, tc := range map[string]struct {
		content, want string
	}{
		"missing":      {"", "no such file"},
		"not JSON":     {"hunter2 and more", `type "service_account"`},
		"another kind": {`{"type":"authorized_user","refresh_token":"hunter2"}`, `type "service_account"`},
		"no key":       {`{"type":"service_account","private_key":17,"private_key_id":"hunter2"}`, "not accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sekrit.json")
			if tc.content != "" {
				if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Dial(options.Connection{ServiceAccountKeyFile: path}, Publishing)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("Dial: %v, want %q", err, tc.want)
			}
			for _, secret := range []string{"sekrit", "hunter2", filepath.Dir(path)} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q tells %q", err, secret)
				}
			}
		})
	}
}

func TestDial_SharesByConfigurationAndDirection(t *testing.T) {
	c := options.Connection{EmulatorEndpoint: "127.0.0.1:1"}
	a, b := mustDial(t, c, Publishing), mustDial(t, c, Publishing)
	if a.ClientConn() != b.ClientConn() {
		t.Error("equal configurations have two connections")
	}
	if pull := mustDial(t, c, Pulling); pull.ClientConn() == a.ClientConn() {
		t.Error("the directions share a connection")
	}
	if other := mustDial(t, options.Connection{EmulatorEndpoint: "127.0.0.1:2"}, Publishing); other.ClientConn() == a.ClientConn() {
		t.Error("two endpoints share a connection")
	}
}

func TestConn_ClosesWithItsLastUser(t *testing.T) {
	fake, addr := serve(t)
	c := options.Connection{EmulatorEndpoint: addr}
	a, b := mustDial(t, c, Publishing), mustDial(t, c, Publishing)
	for range 2 { // the second does nothing
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := publish(t.Context(), b, []byte("x")); err != nil {
		t.Fatalf("one user's Close ended the other's calls: %v", err)
	}
	<-fake.publishes
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := publish(t.Context(), b, []byte("x")); err == nil {
		t.Error("the connection outlived its last user")
	}
	connections.mu.Lock()
	defer connections.mu.Unlock()
	if n := len(connections.entries); n != 0 {
		t.Errorf("%d connections left in the registry", n)
	}
}

// A key file may be mounted after the first attempt.
func TestDial_TriesAgainAfterAFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.json")
	c := options.Connection{ServiceAccountKeyFile: path}
	if _, err := Dial(c, Publishing); err == nil {
		t.Fatal("dialled without the key")
	}
	key, err := os.ReadFile(keyFile(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, key, 0o600); err != nil {
		t.Fatal(err)
	}
	mustDial(t, c, Publishing)
}

// A listener accepts connections, keeps each one's first byte and hangs up.
type listener struct {
	addr  string
	first chan byte
}

func listen(t *testing.T) *listener {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{lis.Addr().String(), make(chan byte, 64)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			var b [1]byte
			_, _ = conn.Read(b[:])
			select {
			case l.first <- b[0]:
			default:
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = lis.Close(); <-done })
	return l
}

// keyFile writes a service account's key as the console hands it out.
func keyFile(t *testing.T) string {
	t.Helper()
	var pemKey bytes.Buffer
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := pem.Encode(&pemKey, &pem.Block{Type: "PRIVATE KEY", Bytes: der}); err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "1", "private_key": pemKey.String(),
		"client_email": "a@p.iam.gserviceaccount.com", "token_uri": "http://127.0.0.1:1/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
