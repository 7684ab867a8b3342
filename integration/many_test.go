package integration

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// ours returns the stacks of the goroutines that this module has started, other
// than those of servers and tests, by their number.
func ours() map[string]string {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for ; n == len(buf); n = runtime.Stack(buf, true) {
		buf = make([]byte, 2*len(buf))
	}
	found := make(map[string]string)
	for stack := range strings.SplitSeq(string(buf[:n]), "\n\n") {
		if strings.Contains(stack, "beam-pubsub-go/pubsubio") &&
			!strings.Contains(stack, "beam-pubsub-go/pubsubio/pubsubtest") &&
			!strings.Contains(stack, "testing.tRunner") {
			number, _, _ := strings.Cut(stack, " [")
			found[number] = stack
		}
	}
	return found
}

// watchGoroutines returns a function that checks that nothing runs any more that
// this module has started since.
func watchGoroutines() (expectNone func(t *testing.T)) {
	// A read without pubsubio.Run parks a minute after its pipeline's failure.
	before := ours()
	added := func() []string {
		var stacks []string
		for number, stack := range ours() {
			if _, ok := before[number]; !ok {
				stacks = append(stacks, stack)
			}
		}
		return stacks
	}
	return func(t *testing.T) {
		t.Helper()
		// What a goroutine does last is to say that it has ended.
		left := added()
		for deadline := time.Now().Add(2 * time.Second); len(left) > 0 && time.Now().Before(deadline); left = added() {
			runtime.Gosched()
		}
		if len(left) > 0 {
			t.Errorf("%d goroutines are left; one of them:\n%s", len(left), left[0])
		}
	}
}

// endings are the ways in which a pipeline ends that has messages to read. What it
// has not acknowledged by then, it has returned.
var endings = []func(t *testing.T, srv *pubsubtest.Server){
	endByItself, endForWantOfMessages, cancelAtTheFirstDelivery, cancelInABundle, failInABundle,
}

func endByItself(t *testing.T, srv *pubsubtest.Server) {
	t.Helper()
	must(t, relayOf(srv, options.Limit{MaxMessages: 10}).run(within(t, 30*time.Second)))
}

// endForWantOfMessages may end before the first has come.
func endForWantOfMessages(t *testing.T, srv *pubsubtest.Server) {
	t.Helper()
	must(t, relayOf(srv, options.Limit{StopWhenIdle: 20 * time.Millisecond}).run(within(t, 30*time.Second)))
}

// cancelAtTheFirstDelivery cancels when the server has sent messages, which may not
// have come yet.
func cancelAtTheFirstDelivery(t *testing.T, srv *pubsubtest.Server) {
	t.Helper()
	before := srv.Stats(inSub).Delivered
	j := start(t, time.Minute, relayOf(srv, options.Limit{}).run)
	must(t, srv.Await(within(t, 10*time.Second), inSub, func(s pubsubtest.Stats) bool { return s.Delivered > before }))
	if err := j.stop(); !errors.Is(err, pubsubio.ErrStopped) {
		t.Fatalf("the pipeline ended with %v", err)
	}
}

// cancelInABundle cancels while a bundle holds messages.
func cancelInABundle(t *testing.T, srv *pubsubtest.Server) {
	t.Helper()
	held, cancelled := make(chan struct{}, 1), make(chan struct{})
	r := relayOf(srv, options.Limit{})
	r.probe = &probe{before: func(context.Context, *message.Message) error {
		select {
		case held <- struct{}{}:
		default:
		}
		<-cancelled
		return nil
	}}
	j := start(t, time.Minute, r.run)
	select {
	case <-held:
	case <-j.ended:
	}
	j.cancel()
	close(cancelled)
	if err := j.wait(); !errors.Is(err, pubsubio.ErrStopped) {
		t.Fatalf("the pipeline ended with %v", err)
	}
}

func failInABundle(t *testing.T, srv *pubsubtest.Server) {
	t.Helper()
	r := relayOf(srv, options.Limit{})
	r.probe = &probe{before: failAlways}
	if err := r.run(within(t, 30*time.Second)); err == nil {
		t.Fatal("the pipeline succeeded")
	}
}

// Receive never returned; streams and goroutines piled up. And what the server had
// sent to a pipeline that was cancelled while its stream opened was nobody's for a
// minute.
func TestPrism_C15_AHundredPipelinesInOneProcess(t *testing.T) {
	long(t)
	const pipelines = 100
	srv := newServer(t)
	expectNoneOfOurs := watchGoroutines()
	before := 0
	for i := range pipelines {
		publish(t, srv, inTopic, 10*i, 10)
		endings[i%len(endings)](t, srv)
		s := srv.Stats(inSub)
		if s.Outstanding == 0 && s.Backlog > 0 {
			must(t, relayOf(srv, options.Limit{MaxMessages: s.Backlog}).run(within(t, 30*time.Second)))
			s = srv.Stats(inSub)
		}
		if s.Acknowledged != int64(10*(i+1)) || s.Outstanding != 0 {
			t.Fatalf("after pipeline %d: %+v", i, s)
		}
		if i == pipelines/10 {
			before = runtime.NumGoroutine()
		}
	}
	expectSettled(t, srv, inSub)
	expectNoneOfOurs(t)
	t.Logf("%d goroutines after a tenth of the pipelines, %d after all: what is left belongs to Beam, prism and idle connections", before, runtime.NumGoroutine())
	expectArrived(t, srv, false)
}

func TestPrism_C15_NothingIsLeftOfManyReaders(t *testing.T) {
	expectNoneOfOurs := watchGoroutines()
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 30_000)
	r := relayOf(srv, options.Limit{})
	r.source.Splits = 8
	j := start(t, time.Minute, r.run)
	must(t, srv.AwaitPublished(within(t, 30*time.Second), outTopic, 5000))
	began := time.Now()
	_ = j.stop()
	if took, limit := time.Since(began), 5*time.Second; took > limit && !raceDetector {
		t.Errorf("stopping took %v, more than ShutdownTimeout (%v)", took, limit)
	}
	expectAcknowledgedIsPublished(t, srv)
	expectSettled(t, srv, inSub)
	expectNoneOfOurs(t)
}

// The instructions of several pipelines in one process have the same ids.
func TestPrism_SeveralPipelinesBesideEachOther(t *testing.T) {
	expectNoneOfOurs := watchGoroutines()
	const pipelines, n = 5, 5000
	var jobs []*job
	var servers []*pubsubtest.Server
	for range pipelines {
		srv := newServer(t)
		publish(t, srv, inTopic, 0, n)
		r := relayOf(srv, options.Limit{MaxMessages: n})
		r.source.Subscriber.MaxRecordsPerBundle = 100
		servers = append(servers, srv)
		jobs = append(jobs, start(t, time.Minute, r.run))
		// Not at the same moment: see parallel.
		must(t, srv.Await(within(t, 10*time.Second), inSub, func(s pubsubtest.Stats) bool { return s.StreamsOpened > 0 }))
	}
	for i, j := range jobs {
		must(t, j.wait())
		if s := servers[i].Stats(inSub); s.Acknowledged != n || s.Redelivered != 0 {
			t.Errorf("pipeline %d: %+v", i, s)
		}
		expectArrived(t, servers[i], true)
		expectSettled(t, servers[i], inSub)
	}
	expectNoneOfOurs(t)
}

// failAlways fails every bundle.
func failAlways(_ context.Context, _ *message.Message) error { return errors.New("broken") }
