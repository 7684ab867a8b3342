package sink

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/keep"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func init() {
	register.DoFn3x0[context.Context, int, func([]byte)](&recordsFn{})
	register.DoFn2x0[[]byte, func([]byte)](&countFn{})
}

// recordsFn emits that many records of 1 KB for each element.
type recordsFn struct{ N int }

func (fn *recordsFn) ProcessElement(_ context.Context, _ int, emit func([]byte)) {
	record := make([]byte, 1024)
	for range fn.N {
		emit(record)
	}
}

// countFn stands in for the sink, to tell what the engine costs.
type countFn struct{ n int }

func (fn *countFn) ProcessElement([]byte, func([]byte)) { fn.n++ }

// startServer runs pubsubtest's server in a process of its own, so that its cost
// is not counted, and returns its endpoint.
func startServer(b *testing.B) string {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "pubsubtestd")
	if out, err := exec.Command("go", "build", "-o", binary, "../pubsubtest/pubsubtestd").CombinedOutput(); err != nil {
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
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}

// measure runs f, which handles b.N records, and reports processor time.
func measure(b *testing.B, f func() error) {
	b.Helper()
	cpu := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkWriteFn is the sink without an engine: bundles of 10,000 records of
// 1 KB.
func BenchmarkWriteFn(b *testing.B) {
	endpoint := startServer(b)
	for _, batch := range []int{100, 1000} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			pool := publish.Config{Nonce: b.Name(), Publisher: publisherOf(batch)}
			pool.Connection.EmulatorEndpoint = endpoint
			_, key, err := newEncoder(Bytes)
			if err != nil {
				b.Fatal(err)
			}
			fn := &writeFn{preparation: preparation{Topic: topic, Encoder: key}, publication: publication{Pool: pool}}
			if err := fn.Setup(); err != nil {
				b.Fatal(err)
			}
			var record any = make([]byte, 1024)
			measure(b, func() error { return bundles(b, fn, record) })
			if err := fn.Teardown(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func publisherOf(batch int) options.Publisher {
	return options.Publisher{BatchElementCount: batch, BatchBytes: 2_000_000, MaxInFlightMessages: 10 * batch}
}

// bundles has fn process b.N records.
func bundles(b *testing.B, fn *writeFn, record any) error {
	b.Helper()
	for left := b.N; left > 0; left -= 10_000 {
		if err := fn.StartBundle(b.Context(), nil); err != nil {
			return err
		}
		for range min(left, 10_000) {
			if err := fn.ProcessElement(b.Context(), 0, record, nil); err != nil {
				return err
			}
		}
		if err := fn.FinishBundle(b.Context(), nil); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkPrism is an in-memory source on prism, into Write and, for the
// engine's own cost, into a counter.
func BenchmarkPrism(b *testing.B) {
	endpoint := startServer(b)
	source := func(s beam.Scope, n int) beam.PCollection {
		return beam.ParDo(s, &recordsFn{N: n}, beam.Create(s, 0))
	}
	b.Run("counter", func(b *testing.B) {
		measure(b, func() error {
			_, _, err := onPrism(b.Context(), func(s beam.Scope) {
				if err := keep.Output(s, beam.ParDo(s, &countFn{}, source(s, b.N))); err != nil {
					b.Fatal(err)
				}
			})
			return err
		})
	})
	for _, batch := range []int{100, 1000} {
		b.Run(fmt.Sprintf("write/batch=%d", batch), func(b *testing.B) {
			measure(b, func() error {
				_, _, err := onPrism(b.Context(), func(s beam.Scope) {
					Write(s, Config{Topic: topic, EmulatorEndpoint: endpoint, Publisher: publisherOf(batch)}, Bytes, source(s, b.N))
				})
				return err
			})
		})
	}
}
