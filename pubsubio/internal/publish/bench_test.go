package publish

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// startServer runs pubsubtest's server in a process of its own, so that its cost
// is not counted, and returns its endpoint.
func startServer(b *testing.B) options.Connection {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "pubsubtestd")
	if out, err := exec.Command("go", "build", "-o", binary, "../../pubsubtest/pubsubtestd").CombinedOutput(); err != nil {
		b.Fatalf("build the server: %v\n%s", err, out)
	}
	cmd := exec.Command(binary, "--topic="+topic, "--until-stdin-closes")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return options.Connection{EmulatorEndpoint: strings.TrimSpace(strings.TrimPrefix(line, "listening on "))}
}

// cpu is the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure runs f, which publishes b.N messages, and reports processor time.
func measure(b *testing.B, f func()) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu(b)
	f()
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkPool publishes messages of 1 KB and of 10 KB through one bundle, with
// requests of 100 and, of the small ones, of 1,000 messages.
func BenchmarkPool(b *testing.B) {
	c := Config{Connection: startServer(b), Nonce: "bench"}
	for _, bench := range []struct{ batch, size int }{{100, 1024}, {1000, 1024}, {100, 10240}} {
		batch := bench.batch
		b.Run(fmt.Sprintf("batch=%d/size=%d", batch, bench.size), func(b *testing.B) {
			c.Publisher = options.Publisher{BatchElementCount: batch, BatchBytes: 2_000_000, MaxInFlightMessages: 10 * batch}
			m := &message.Message{Data: make([]byte, bench.size), Attributes: map[string]string{"id": "0123456789"}}
			bundle, err := Open(c, Handlers{})
			if err != nil {
				b.Fatal(err)
			}
			measure(b, func() {
				for range b.N {
					if err := bundle.Add(b.Context(), topic, m, 0); err != nil {
						b.Fatal(err)
					}
				}
				if err := bundle.Finish(b.Context()); err != nil {
					b.Fatal(err)
				}
			})
			if err := Close(c); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkGenerated is the same by hand, with the generated stub: the price of
// encoding from generated types, and the least that a caller without this
// package would pay.
func BenchmarkGenerated(b *testing.B) {
	conn, err := transport.Dial(startServer(b), transport.Publishing)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, client := transport.WithTopic(b.Context(), topic), pubsubpb.NewPublisherClient(conn.ClientConn())
	for _, batch := range []int{100, 1000} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			m := &message.Message{Data: make([]byte, 1024), Attributes: map[string]string{"id": "0123456789"}}
			measure(b, func() {
				var requests sync.WaitGroup
				slots := make(chan struct{}, 10)
				for left := b.N; left > 0; left -= batch {
					r := &pubsubpb.PublishRequest{Topic: topic, Messages: make([]*pubsubpb.PubsubMessage, min(left, batch))}
					for i := range r.Messages {
						r.Messages[i] = m.PublishProto()
					}
					slots <- struct{}{}
					requests.Go(func() {
						publishGenerated(ctx, b, client, r)
						<-slots
					})
				}
				requests.Wait()
			})
		})
	}
}

func publishGenerated(ctx context.Context, b *testing.B, client pubsubpb.PublisherClient, r *pubsubpb.PublishRequest) {
	b.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := client.Publish(ctx, r); err != nil {
		b.Error(err)
	}
}

// orderJSON returns a record as pipelines publish them: JSON with a few words and
// numbers, padded with more of it to that size.
func orderJSON(i, size int) []byte {
	b := []byte(`{"items":[`)
	for j := 0; len(b) < size-90; j++ {
		b = fmt.Appendf(b, `{"sku":"%08x","name":"item %d","price":%d.%02d,"quantity":%d},`, (i*7919+j*104729)*2654435761%(1<<32), j, i*31%500, j*17%100, i%9+1)
	}
	return fmt.Appendf(b, `{}],"order":%d,"customer":"%x","country":"DE"}`, i, i*48271%(1<<31))
}

// BenchmarkCompression publishes JSON with and without Compression, and reports what
// part of the bytes is left by gzip.
func BenchmarkCompression(b *testing.B) {
	c := Config{Connection: startServer(b), Nonce: "bench-compression"}
	for _, size := range []int{1024, 10240} {
		for _, compression := range []int{0, 1} {
			b.Run(fmt.Sprintf("size=%d/compression=%d", size, compression), func(b *testing.B) {
				c.Publisher = options.Publisher{Compression: compression, MaxInFlightMessages: 10_000}
				bundle, err := Open(c, Handlers{})
				if err != nil {
					b.Fatal(err)
				}
				messages := make([]*message.Message, 251)
				for i := range messages {
					messages[i] = &message.Message{Data: orderJSON(i, size)}
				}
				measure(b, func() {
					for i := range b.N {
						if err := bundle.Add(b.Context(), topic, messages[i%len(messages)], 0); err != nil {
							b.Fatal(err)
						}
					}
					if err := bundle.Finish(b.Context()); err != nil {
						b.Fatal(err)
					}
				})
				if compression > 0 {
					b.ReportMetric(gzipped(messages[:100]), "left/op")
				}
				if err := Close(c); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// gzipped is what part of a request's bytes is left by gzip, as gRPC uses it.
func gzipped(messages []*message.Message) float64 {
	request := requestHeader(topic)
	for _, m := range messages {
		request = appendMessage(request, m, sizeMessage(m))
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(request)
	_ = w.Close()
	return float64(out.Len()) / float64(len(request))
}
