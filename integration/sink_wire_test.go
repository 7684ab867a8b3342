package integration

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// A wiretap is a publisher service that notes how each request came.
type wiretap struct {
	pubsubpb.UnimplementedPublisherServer

	mu       sync.Mutex // guards requests
	requests []wireRequest
}

type wireRequest struct {
	compression  string
	sent, actual int // bytes on the wire, and uncompressed
}

func (s *wiretap) Publish(_ context.Context, r *pubsubpb.PublishRequest) (*pubsubpb.PublishResponse, error) {
	return &pubsubpb.PublishResponse{MessageIds: make([]string, len(r.GetMessages()))}, nil
}

// TagRPC and those below make it a stats.Handler.
func (s *wiretap) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, wiretapKey{}, new(wireRequest))
}

type wiretapKey struct{}

func (s *wiretap) HandleRPC(ctx context.Context, event stats.RPCStats) {
	r := ctx.Value(wiretapKey{}).(*wireRequest)
	switch e := event.(type) {
	case *stats.InHeader:
		r.compression = e.Compression
	case *stats.InPayload:
		r.sent, r.actual = e.CompressedLength, e.Length
		s.mu.Lock() // before the answer, and so before the job ends
		defer s.mu.Unlock()
		s.requests = append(s.requests, *r)
	}
}

func (s *wiretap) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (s *wiretap) HandleConn(context.Context, stats.ConnStats) {}

// serve serves s until the test ends and returns its address.
func (s *wiretap) serve(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	g := grpc.NewServer(grpc.StatsHandler(s), grpc.MaxRecvMsgSize(options.MaxRequestBytes))
	pubsubpb.RegisterPublisherServer(g, s)
	served := make(chan struct{})
	go func() { defer close(served); _ = g.Serve(lis) }() // ends with Stop
	t.Cleanup(func() { g.Stop(); <-served })
	return lis.Addr().String()
}

// The limits of the service count before compression: what compresses well and is
// too large must not be sent, and what is just within the limit must be.
func TestSender_CompressesFromASize_C38(t *testing.T) {
	const size = 10_000
	for name, c := range map[string]struct {
		compression, bytes int
		want               string // the encoding
		refused            bool
	}{
		"off":                   {0, 2 * size, "", false},
		"under the size":        {size, size - 100, "", false},
		"from the size on":      {size, size, "gzip", false},
		"9.9 MB":                {size, 9_900_000, "gzip", false},
		"over the limit before": {size, 10_100_000, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			tap := new(wiretap)
			topic, route := newRoute(t)
			w := &writing{
				sink: sink.Config{
					Topic: topic, EmulatorEndpoint: tap.serve(t), OnFailure: sink.HandleWith(routeToTest),
					Publisher: options.Publisher{Compression: c.compression},
				},
				messages: []*message.Message{{Data: make([]byte, c.bytes)}},
			}
			must(t, w.run(within(t, time.Minute)))
			given := route.list()
			tap.mu.Lock()
			defer tap.mu.Unlock()
			if c.refused {
				if len(tap.requests) != 0 || len(given) != 1 || !strings.Contains(given[0].Rule, "the limit is 10000000") {
					t.Errorf("%d requests, %d refused", len(tap.requests), len(given))
				}
				return
			}
			if len(tap.requests) != 1 || len(given) != 0 {
				t.Fatalf("%d requests, %d refused", len(tap.requests), len(given))
			}
			r := tap.requests[0]
			if r.compression != c.want || r.actual < c.bytes || (r.sent < r.actual/10) != (c.want == "gzip") {
				t.Errorf("%d bytes were sent as %d, compressed by %q", r.actual, r.sent, r.compression)
			}
		})
	}
}

// keyOf returns the contents of a service account's key, which no Google knows.
func keyOf(t *testing.T) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "1",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": "a@p.iam.gserviceaccount.com", "token_uri": "http://127.0.0.1:1/token",
	})
	must(t, err)
	return content
}

func keyFileOf(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "not-to-be-shown.json")
	must(t, os.WriteFile(path, content, 0o600))
	return path
}

// A job's error is seen by many: it shows neither where the key is nor what is in it.
func TestSink_AKeyFileThatIsNoneTellsNeitherPathNorContents(t *testing.T) {
	const secret = "s3cr3t"
	for name, path := range map[string]string{
		"missing":        filepath.Join(t.TempDir(), "not-to-be-shown.json"),
		"no JSON":        keyFileOf(t, []byte(secret)),
		"another type":   keyFileOf(t, []byte(`{"type": "authorized_user", "client_secret": "`+secret+`"}`)),
		"a broken key":   keyFileOf(t, []byte(`{"type": "service_account", "private_key": "`+secret+`"}`)),
		"a path of none": t.TempDir(),
	} {
		t.Run(name, func(t *testing.T) {
			topic, _ := newRoute(t)
			w := &writing{sink: sink.Config{Topic: topic, ServiceAccountKeyFile: path}, messages: numberedMessages(1)}
			err := w.run(within(t, time.Minute))
			expectError(t, err, "service account key file")
			for _, hidden := range []string{path, filepath.Base(path), secret} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("the error shows %q: %v", hidden, err)
				}
			}
		})
	}
}

// shutOut listens for clients that come with TLS, and lets none in. It returns the port,
// and the names that they ask for.
func shutOut(t *testing.T) (port string, hello <-chan string) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	names := make(chan string, 100)
	refuse := &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		select {
		case names <- h.ServerName:
		default:
		}
		return nil, net.ErrClosed
	}}
	served := make(chan struct{})
	go func() { // ends when the listener is closed
		defer close(served)
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			_ = tls.Server(conn, refuse).Handshake()
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = lis.Close(); <-served })
	_, port, err = net.SplitHostPort(lis.Addr().String())
	must(t, err)
	return port, names
}

// A regional endpoint is reached over TLS, under its own name.
func TestPrism_ASourceReachesARegionalEndpointOverTLS(t *testing.T) {
	port, hello := shutOut(t)
	p, s := beam.NewPipelineWithRoot()
	source.Read(s, source.Config{
		Subscriptions: source.From(inSub), Endpoint: "localhost:" + port, ServiceAccountKeyFile: keyFileOf(t, keyOf(t)),
	}, source.Bytes)
	j := start(t, time.Minute, func(ctx context.Context) error { return runPipeline(ctx, p) })
	select {
	case name := <-hello:
		if name != "localhost" {
			t.Errorf("TLS for %q", name)
		}
	case <-within(t, 20*time.Second).Done():
		t.Error("nobody came with TLS")
	}
	j.running(t)
	if err := j.stop(); !errors.Is(err, pubsubio.ErrStopped) {
		t.Error(err)
	}
}

// A regional endpoint is reached over TLS, under its own name.
func TestSink_ARegionalEndpointIsReachedOverTLS(t *testing.T) {
	port, hello := shutOut(t)
	topic, _ := newRoute(t)
	w := &writing{
		sink: sink.Config{
			Topic: topic, Endpoint: "localhost:" + port, ServiceAccountKeyFile: keyFileOf(t, keyOf(t)),
			Publisher: options.Publisher{RetryMaxAttempts: 2, RetryInitialDelay: options.Disabled, RetryInitialRPCTimeout: 5 * time.Second},
		},
		messages: numberedMessages(1),
	}
	expectError(t, w.run(within(t, time.Minute)), topic, "Unavailable", "options.Publisher.RetryMaxAttempts (2) is used up")
	select {
	case name := <-hello:
		if name != "localhost" {
			t.Errorf("TLS for %q", name)
		}
	default:
		t.Error("nobody came with TLS")
	}
}

// logged collects what is logged while a test runs.
type logged struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// An outage that lasts is told of while it does.
func TestSink_C32_AWarningTellsOfAnOutageThatLasts(t *testing.T) {
	log := new(logged)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	t.Cleanup(func() { slog.SetDefault(before) })
	o := outageOptions()
	o.PublishProgressTimeout, o.BatchDelay = 5*time.Second, 10*time.Millisecond // a warning each 500 ms
	at, w, _ := outageOf(t, 1000, o)
	down := at.srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.Fail(status.Error(codes.ResourceExhausted, "quota of p")))
	j := start(t, time.Minute, w.run)
	ctx := within(t, 20*time.Second)
	must(t, down.AwaitFired(ctx, 1))
	for !strings.Contains(log.String(), "no publish has completed for") {
		work(ctx, 10*time.Millisecond)
		j.running(t)
		must(t, ctx.Err())
	}
	down.Remove()
	must(t, j.wait())
	for _, want := range []string{w.sink.Topic, "ResourceExhausted", "quota of p", "attempts over", "first failure at", "options.Publisher.PublishProgressTimeout is 5s"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no warning says %q:\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "no publish has completed for"); n > 12 {
		t.Errorf("%d warnings", n)
	}
	expectNoLoss(t, w, at, 1)
}
