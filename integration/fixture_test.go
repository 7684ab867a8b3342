package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// What most tests relay from and to. The project is that of no other package: a read that a
// test leaves behind may find the server of another process where its own has been.
const (
	inTopic  = "projects/integration/topics/input"
	inSub    = "projects/integration/subscriptions/input"
	outTopic = "projects/integration/topics/output"
)

func init() {
	sink.RegisterEncoder(republish)
}

func republish(m *message.Message) (*message.Message, error) { return m.Republishable(), nil }

// newServer starts a server with the topics in and out, and a subscription of the
// former.
func newServer(t testing.TB, adjust ...func(*pubsubtest.Config)) *pubsubtest.Server {
	t.Helper()
	srv := pubsubtest.New(t, adjust...)
	srv.MustCreateTopic(inTopic)
	srv.MustCreateTopic(outTopic)
	srv.MustCreateSubscription(inSub, inTopic)
	return srv
}

// publish publishes n messages to a topic, numbered from the given one in their
// data.
func publish(t testing.TB, srv *pubsubtest.Server, topic string, from, n int) {
	t.Helper()
	messages := make([]*message.Message, n)
	for i := range messages {
		messages[i] = &message.Message{Data: fmt.Appendf(nil, "%07d", from+i)}
	}
	if _, err := srv.Publish(topic, messages...); err != nil {
		t.Fatal(err)
	}
}

// A relay is a pipeline that publishes to out what it reads from in, unless its
// fields say otherwise.
type relay struct {
	source source.Config
	sink   sink.Config
	// probe is what every message passes on its way, if any.
	probe *probe
}

func relayOf(srv *pubsubtest.Server, limit options.Limit) *relay {
	return relayAt(srv.Endpoint(), limit)
}

func relayAt(endpoint string, limit options.Limit) *relay {
	return &relay{
		source: source.Config{
			Subscriptions: source.From(inSub), EmulatorEndpoint: endpoint, Limit: limit,
			// The default, by which what is still on its way has to come, or stays leased.
			Subscriber: options.Subscriber{ShutdownTimeout: stretched(5 * time.Second)},
		},
		sink: sink.Config{Topic: outTopic, EmulatorEndpoint: endpoint},
	}
}

func (r *relay) build() *beam.Pipeline {
	p, s := beam.NewPipelineWithRoot()
	messages := source.Read(s, r.source, source.Message)
	if r.probe != nil {
		messages = r.probe.apply(s, messages)
	}
	sink.Write(s, r.sink, republish, messages)
	return p
}

// run runs the relay to its end by pubsubio.Run.
func (r *relay) run(ctx context.Context) error { return runPipeline(ctx, r.build()) }

// runUnknown runs the relay on prism without telling it so: as on any runner, the
// rule of two rounds decides.
func (r *relay) runUnknown(ctx context.Context) error {
	awaitTurn(ctx)
	_, err := prism.Execute(ctx, r.build())
	return err
}

// runPipeline is pubsubio.Run.
func runPipeline(ctx context.Context, p *beam.Pipeline) error {
	awaitTurn(ctx)
	return pubsubio.Run(ctx, p)
}

// turns keeps the submissions of pipelines apart: prism keeps the artifacts of
// jobs in a map without a lock, and the process dies of two at a time.
var turns struct {
	sync.Mutex
	next time.Time
}

func awaitTurn(ctx context.Context) {
	turns.Lock()
	wait := time.Until(turns.next)
	turns.next = time.Now().Add(max(wait, 0) + 50*time.Millisecond)
	turns.Unlock()
	work(ctx, wait)
}

// stretched is d, and longer under the race detector, which makes all else slower.
func stretched(d time.Duration) time.Duration {
	if raceDetector {
		return 4 * d
	}
	return d
}

// within returns a context that ends the test's patience.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stretched(d))
	t.Cleanup(cancel)
	return ctx
}

// A job is a pipeline that runs beside the test.
type job struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once ended is closed
}

// start runs f with a context of its own, which the end of the test cancels.
func start(t testing.TB, patience time.Duration, f func(ctx context.Context) error) *job {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t, patience))
	j := &job{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(j.ended)
		j.err = f(ctx)
	}()
	t.Cleanup(func() { cancel(); <-j.ended })
	return j
}

// wait returns the job's error once it has ended.
func (j *job) wait() error {
	<-j.ended
	return j.err
}

// stop cancels the job and returns its error.
func (j *job) stop() error {
	j.cancel()
	return j.wait()
}

// running fails the test if the job has ended.
func (j *job) running(t testing.TB) {
	t.Helper()
	select {
	case <-j.ended:
		t.Fatalf("the pipeline has ended: %v", j.err)
	default:
	}
}

// must ends the test if err is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// long skips a test of more than a few seconds where -short asks for it.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes more than 5 s; run without -short")
	}
}

// awaitAcknowledged waits until n messages of a subscription are acknowledged.
func awaitAcknowledged(ctx context.Context, t testing.TB, srv *pubsubtest.Server, subscription string, n int64) {
	t.Helper()
	must(t, srv.Await(ctx, subscription, func(s pubsubtest.Stats) bool { return s.Acknowledged >= n }))
}

// data counts the messages by their data.
func data(messages []*message.Message) map[string]int {
	counts := make(map[string]int)
	for _, m := range messages {
		counts[string(m.Data)]++
	}
	return counts
}

// expectArrived checks that exactly the messages published to in were published
// to out: each at least once, or, where exactly says so, once.
func expectArrived(t testing.TB, srv *pubsubtest.Server, exactly bool) {
	t.Helper()
	in, out := data(srv.Messages(inTopic)), data(srv.Messages(outTopic))
	for _, d := range slices.Sorted(maps.Keys(in)) {
		if out[d] == 0 {
			t.Errorf("message %.20q was not published (%d of %d distinct ones were)", d, len(out), len(in))
			return
		}
		if exactly && out[d] > in[d] {
			t.Errorf("message %.20q was published %d times, not %d", d, out[d], in[d])
			return
		}
	}
	if len(out) != len(in) {
		t.Errorf("%d distinct messages arrived of %d", len(out), len(in))
	}
}

// expectSettled checks that nothing of a subscription is leased or streamed any
// more.
func expectSettled(t testing.TB, srv *pubsubtest.Server, subscription string) {
	t.Helper()
	if s := srv.Stats(subscription); s.Outstanding != 0 {
		t.Errorf("%s: %d messages are still outstanding: %+v", subscription, s.Outstanding, s)
	}
	// The server notices the end of a stream a moment later.
	if err := srv.Await(within(t, 5*time.Second), subscription, func(s pubsubtest.Stats) bool { return s.Streams == 0 }); err != nil {
		t.Errorf("%s: a stream is left open: %v", subscription, err)
	}
}

// parallel lets a test that mostly waits run beside others, but not under the
// race detector, which would find what turns keeps apart.
func parallel(t *testing.T) {
	t.Helper()
	if !raceDetector {
		t.Parallel()
	}
}
