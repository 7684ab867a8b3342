package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"google.golang.org/api/option"
	gtransport "google.golang.org/api/transport/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// globalEndpoint is the service where no regional endpoint is configured.
const globalEndpoint = "pubsub.googleapis.com:443"

// Endpoint returns where c's calls go, for texts: a host and a port.
func Endpoint(c options.Connection) string {
	return cmp.Or(c.EmulatorEndpoint, c.Endpoint, globalEndpoint)
}

// scopes are what a token is asked for, as Google's client does: the second for
// accounts that have only that one.
var scopes = []string{"https://www.googleapis.com/auth/pubsub", "https://www.googleapis.com/auth/cloud-platform"}

// Flow-control windows, in bytes. A fixed window also spares gRPC's bandwidth
// probes.
const (
	// pullStreamWindow is what the transport may hold of one stream beyond what
	// its reader took: little, since messages hoarded here are leased, are seen
	// by no cap of ours and are kept from other subscribers. It still carries
	// five times the 10 MB/s that the service sends on a stream at a round trip
	// of 20 ms. A larger response opens the window by itself while it is read.
	pullStreamWindow = 1 << 20
	// pullConnWindow serves the streams of one connection together. gRPC
	// refills it on arrival, so that a stream nobody reads holds up no other.
	pullConnWindow = 4 << 20
	// callWindow is ample for answers that carry a few bytes a message, or none.
	callWindow = 1 << 20
)

// callWriteBuffer is how much of a request gRPC gathers before it writes to
// the socket, one for a connection. Its default of 32 KiB costs a system call
// for every 32 messages of 1 KB: 1.43–1.51 µs of CPU a message at 100 a request,
// against 1.08–1.40 from 64 KiB on, where nothing more is gained.
const callWriteBuffer = 128 << 10

// keepAlive finds a connection that died without a word, whatever swallows its
// bytes: one on which nothing has come for Time, though a call is open, is asked
// for a sign of life, and closed where none comes within Timeout. Timeout is also
// the TCP user timeout (gRPC sets it beside pings): data that stays unacknowledged
// so long breaks the connection.
//
// Servers punish clients that ask often (gRPC's own from the third time within
// five minutes in which they had nothing to send; the client then doubles Time by
// itself). So each time is well above the silence that a healthy connection has:
//
//   - the service answers the pings of an open stream every 30 s, so a connection
//     of streams is never silent for 35 s. A dead one is replaced 45 s after the
//     last word. Emulators before 0.8.32 do not answer such pings: an idle stream
//     is closed and opened again there a few times in the first half hour.
//   - calls that settle are answered at once, so silence for 10 s is trouble. The first
//     call after a pause asks at once.
//   - an attempt at a publish request has a minute by default, so silence for longer
//     while one is under way is trouble.
func keepAlive(d Direction) keepalive.ClientParameters {
	switch d {
	case Pulling:
		return keepalive.ClientParameters{Time: 35 * time.Second, Timeout: 10 * time.Second}
	case Settling:
		return keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 10 * time.Second}
	default:
		return keepalive.ClientParameters{Time: time.Minute, Timeout: 20 * time.Second}
	}
}

// connect keeps gRPC's pauses between connection attempts short: its default
// grows to two minutes, for which a server that is back would go unnoticed.
// Calls have a backoff of their own.
var connect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
	MinConnectTimeout: 10 * time.Second,
}

//nolint:contextcheck // the connection outlives whoever asks for it first
func dial(c options.Connection, d Direction) (*grpc.ClientConn, error) {
	if c.EmulatorEndpoint != "" {
		opts := append(dialOptions(d), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
		conn, err := grpc.NewClient(c.EmulatorEndpoint, opts...)
		if err != nil {
			return nil, fmt.Errorf("transport: connect to the emulator: %w", err)
		}
		return conn, nil
	}
	opts := []option.ClientOption{
		option.WithEndpoint(Endpoint(c)),
		option.WithScopes(scopes...),
		option.WithUserAgent(userAgent),
		// gRPC's stats handler costs allocations per call and would report to
		// nobody: this project counts by itself.
		option.WithTelemetryDisabled(),
	}
	if c.ServiceAccountKeyFile != "" {
		key, err := readKey(c.ServiceAccountKeyFile)
		if err != nil {
			return nil, err
		}
		opts = append(opts, option.WithAuthCredentialsJSON(option.ServiceAccount, key))
	}
	for _, o := range dialOptions(d) {
		opts = append(opts, option.WithGRPCDialOption(o))
	}
	conn, err := gtransport.Dial(context.Background(), opts...)
	switch {
	case err == nil:
		return conn, nil
	case c.ServiceAccountKeyFile != "":
		// Its text may quote the key.
		return nil, errors.New("transport: the service account key file was not accepted as credentials; create a new key for the account")
	default:
		return nil, fmt.Errorf("transport: connect with application default credentials: %w", err)
	}
}

func dialOptions(d Direction) []grpc.DialOption {
	opts := []grpc.DialOption{
		grpc.WithUserAgent(userAgent),
		grpc.WithKeepaliveParams(keepAlive(d)),
		grpc.WithConnectParams(connect),
		// Retries belong to the callers, who keep the last status and count.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		// A message of 10 MB fits in either direction, framing included; what
		// bounds memory are the flow control and the caps above this package.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)),
	}
	if d == Pulling {
		return append(opts, grpc.WithStaticStreamWindowSize(pullStreamWindow), grpc.WithStaticConnWindowSize(pullConnWindow))
	}
	return append(opts, grpc.WithStaticStreamWindowSize(callWindow), grpc.WithStaticConnWindowSize(callWindow),
		grpc.WithWriteBufferSize(callWriteBuffer))
}

// readKey returns the contents of a service account's key file. Its errors name
// neither path nor contents, which a pipeline's log would show to many.
func readKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, fmt.Errorf("transport: read the service account key file on this worker: %w", err)
	}
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(key, &kind) != nil || kind.Type != "service_account" {
		return nil, errors.New(`transport: the service account key file does not hold a JSON key of type "service_account"`)
	}
	return key, nil
}
