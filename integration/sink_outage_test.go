package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

// Caps of the outages' tests: small, so that they are met at once.
const (
	capMessages = 200
	capBytes    = 20_000
)

// outageOptions are those under which an outage of seconds is a long one.
func outageOptions() options.Publisher {
	return options.Publisher{
		BatchElementCount: 20, BatchDelay: 500 * time.Millisecond, // full requests
		MaxInFlightMessages: capMessages, MaxInFlightBytes: capBytes, BatchBytes: capBytes,
		RetryInitialDelay: 20 * time.Millisecond, RetryDelayMultiplier: 2, RetryMaxDelay: 300 * time.Millisecond,
		RetryInitialRPCTimeout: 2 * time.Second,
	}
}

// outageOf returns a writing of n messages to a topic of its own, under a policy
// that drops what it is given.
func outageOf(t *testing.T, n int, o options.Publisher) (*place, *writing, *routed) {
	t.Helper()
	at := placeOf(pubsubtest.New(t))
	topic, route := newRoute(t)
	at.createTopic(topic)
	return at, &writing{
		sink:     sink.Config{Topic: topic, EmulatorEndpoint: at.endpoint, OnFailure: sink.HandleWith(routeToTest), Publisher: o},
		messages: numberedMessages(n), probe: &probe{},
	}, route
}

// expectWithinCaps checks that there was at no instant more in flight than the caps
// allow, by what the server had.
func expectWithinCaps(t *testing.T, at *place) {
	t.Helper()
	if l := at.srv.PublishLoad(""); l.MaxMessages > capMessages || l.MaxBytes > capBytes {
		t.Errorf("at most %d messages of %d bytes were in flight, over the caps of %d and %d", l.MaxMessages, l.MaxBytes, capMessages, capBytes)
	}
}

// expectNoLoss checks that every message arrived, and at most so many times.
func expectNoLoss(t *testing.T, w *writing, at *place, most int) {
	t.Helper()
	times := make(map[string]int)
	for _, m := range at.messages(w.sink.Topic) {
		times[m.Data]++
	}
	for _, m := range w.messages {
		if n := times[string(m.Data)]; n < 1 || n > most {
			t.Errorf("message %s was stored %d times", m.Data, n)
		}
	}
	if len(times) != len(w.messages) {
		t.Errorf("%d distinct messages of %d", len(times), len(w.messages))
	}
}

// An outage is waited out: nothing is dropped, what is in flight stays within its
// caps and what comes is held back, so that memory stays flat.
func TestSink_C32_AnOutageIsWaitedOut(t *testing.T) {
	const n, outage = 3000, 2 * time.Second
	for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.Internal, codes.Unauthenticated} {
		t.Run(code.String(), func(t *testing.T) {
			parallel(t)
			at, w, route := outageOf(t, n, outageOptions())
			down := at.srv.Order(pubsubtest.Rule{Method: "Publish", Skip: 10}, pubsubtest.Fail(status.Error(code, "come back later")))
			j := start(t, time.Minute, w.run)
			ctx := within(t, 30*time.Second)
			must(t, down.AwaitFired(ctx, 1))
			work(ctx, outage)
			j.running(t)
			// 10 requests were stored, the caps are full, and one more is in Add.
			if taken, most := w.probe.passed.Load(), int64(10*20+capMessages+1); taken > most {
				t.Errorf("%d messages were taken in during the outage, more than %d", taken, most)
			}
			if w.counts().SendErrors == 0 {
				t.Error("the counts tell of no error while the outage lasts")
			}
			// 10 requests at once, each at most 300 ms apart, 150 on average.
			if got := down.Fired(); got > 10*(5+2*int64(outage/(150*time.Millisecond))) {
				t.Errorf("%d calls in %v of outage", got, outage)
			}
			down.Remove()
			must(t, j.wait())
			expectNoLoss(t, w, at, 1)
			expectWithinCaps(t, at)
			if got := len(route.list()); got != 0 {
				t.Errorf("%d messages reached the policy", got)
			}
			if c := w.counts(); c.Published != n || c.Failed != 0 || c.SendErrors != down.Fired() {
				t.Errorf("counts %+v, of %d refused calls", c, down.Fired())
			}
		})
	}
}

// An outage beyond the budget fails the job; a policy that drops never sees it.
func TestSink_AnOutageBeyondItsBudgetDropsNothing(t *testing.T) {
	away := status.Error(codes.Unavailable, "come back later")
	for name, c := range map[string]struct {
		change func(*options.Publisher)
		want   []string
	}{
		"RetryTotalTimeout": {
			func(o *options.Publisher) { o.RetryTotalTimeout = 1500 * time.Millisecond },
			[]string{"options.Publisher.RetryTotalTimeout (1.5s) is used up"},
		},
		"RetryMaxAttempts": {
			func(o *options.Publisher) { o.RetryMaxAttempts = 4 },
			[]string{"options.Publisher.RetryMaxAttempts (4) is used up", "4 attempts"},
		},
		"PublishProgressTimeout": {
			func(o *options.Publisher) { o.PublishProgressTimeout = 1500 * time.Millisecond },
			[]string{"options.Publisher.PublishProgressTimeout is 1.5s"},
		},
		"PublishProgressTimeout, in order": {
			func(o *options.Publisher) {
				o.PublishProgressTimeout, o.EnableMessageOrdering = 1500*time.Millisecond, true
			},
			[]string{"options.Publisher.PublishProgressTimeout is 1.5s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			o := outageOptions()
			c.change(&o)
			at, w, route := outageOf(t, 1000, o)
			for i, m := range w.messages {
				if o.EnableMessageOrdering {
					m.OrderingKey = fmt.Sprint(i % 3)
				}
			}
			at.srv.Order(pubsubtest.Rule{Method: "Publish", Skip: 5}, pubsubtest.Fail(away))
			err := w.run(within(t, time.Minute))
			expectError(t, err, append(c.want, w.sink.Topic, "Unavailable", "come back later", "attempts over", "first failure at")...)
			if got := len(route.list()); got != 0 {
				t.Errorf("%d messages reached the policy", got)
			}
			// Five requests, of which a slow machine may not fill each.
			stored := int64(len(at.messages(w.sink.Topic)))
			if c := w.counts(); c.Dropped != 0 || c.Published != stored || stored < 5 || stored > 100 || c.SendErrors == 0 {
				t.Errorf("counts %+v, %d stored", c, stored)
			}
			expectWithinCaps(t, at)
		})
	}
}

// A request was stored and its answer lost: sending again is the only way not to
// lose it, and costs one copy.
func TestSink_C37_AStoredRequestWithoutAnAnswerComesAgain(t *testing.T) {
	const n, batch = 1000, 20
	for name, ending := range map[string]pubsubtest.Action{
		"DEADLINE_EXCEEDED from the service": pubsubtest.Fail(status.Error(codes.DeadlineExceeded, "lost")),
		"the attempt's own deadline":         pubsubtest.NeverAnswer(),
		"a broken connection":                pubsubtest.Disconnect(),
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			o := outageOptions()
			o.RetryInitialRPCTimeout = 500 * time.Millisecond
			o.BatchDelay = time.Minute // each request is named by its first message
			at, w, route := outageOf(t, n, o)
			var seen sync.Map
			first := func(m *message.Message) bool {
				var i int
				if _, err := fmt.Sscanf(string(m.Data), "%d", &i); err != nil || i%batch != 0 {
					return false
				}
				_, again := seen.LoadOrStore(i, true)
				return !again
			}
			lost := at.srv.Order(pubsubtest.Rule{Method: "Publish", Message: first}, pubsubtest.CarryOut(), ending)
			must(t, w.run(within(t, time.Minute)))
			if got := lost.Fired(); got != n/batch {
				t.Errorf("%d answers were lost, not one of each of %d requests", got, n/batch)
			}
			most := 2
			if name == "a broken connection" {
				most = 12 // it takes the answers of all that is in flight with it
			}
			expectNoLoss(t, w, at, most)
			expectWithinCaps(t, at)
			if got := len(route.list()); got != 0 {
				t.Errorf("%d messages reached the policy", got)
			}
			if c := w.counts(); c.Published != n {
				t.Errorf("counts %+v: a record counts once", c)
			}
		})
	}
}

// A half-open connection answers nothing: the attempts' deadlines end, and when the
// connection is found to be dead all goes on.
func TestSink_AHalfOpenConnectionLosesNothing(t *testing.T) {
	parallel(t)
	const n = 1000
	o := outageOptions()
	o.RetryInitialRPCTimeout = 300 * time.Millisecond
	at, w, route := outageOf(t, n, o)
	reached := at.srv.Order(pubsubtest.Rule{Method: "Publish", Skip: 10}, pubsubtest.NeverAnswer())
	j := start(t, time.Minute, w.run)
	ctx := within(t, 30*time.Second)
	must(t, reached.AwaitFired(ctx, 1))
	if silent := at.srv.Silence(); silent != 1 {
		t.Errorf("%d connections", silent)
	}
	reached.Remove()
	work(ctx, 1500*time.Millisecond) // of silence
	j.running(t)
	if c := w.counts(); c.Published > 200 || c.SendErrors == 0 {
		t.Errorf("counts %+v in the silence", c)
	}
	at.srv.BreakConnections()
	must(t, j.wait())
	expectNoLoss(t, w, at, 2)
	expectWithinCaps(t, at)
	if got := len(route.list()); got != 0 {
		t.Errorf("%d messages reached the policy", got)
	}
}

// Where there was never an answer the error says where to look.
func TestSink_NoAnswerAtAllNamesTheEndpoint(t *testing.T) {
	parallel(t)
	o := outageOptions()
	o.PublishProgressTimeout = time.Second
	at, w, route := outageOf(t, 100, o)
	at.srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.NeverAnswer())
	expectError(t, w.run(within(t, time.Minute)), "no answer at all from "+at.endpoint, w.sink.Topic, "options.Publisher.PublishProgressTimeout is 1s", "100 messages in flight")
	if got := len(route.list()); got != 0 {
		t.Errorf("%d messages reached the policy", got)
	}
}

// Front ends come and go: a GOAWAY fails no call, a broken connection fails those on
// it, and they are sent again.
func TestSink_ConnectionsThatEndUnderLoad(t *testing.T) {
	const n = 10_000
	for name, end := range map[string]func(*pubsubtest.Server){
		"GOAWAY":  func(srv *pubsubtest.Server) { srv.GoAway() },
		"broken":  func(srv *pubsubtest.Server) { srv.BreakConnections() },
		"restart": func(srv *pubsubtest.Server) { _ = srv.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			at, w, route := outageOf(t, n, outageOptions())
			at.srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.WaitBetween(time.Millisecond, 5*time.Millisecond))
			j := start(t, time.Minute, w.run)
			ctx := within(t, 40*time.Second)
			const ends = 5
			for i := range ends {
				must(t, at.srv.AwaitPublished(ctx, w.sink.Topic, int64(n*(i+1)/(ends+2))))
				end(at.srv)
			}
			must(t, j.wait())
			most := 1 + ends // what is in flight at each
			if name == "GOAWAY" {
				most = 1
			}
			expectNoLoss(t, w, at, most)
			expectWithinCaps(t, at)
			if got := len(route.list()); got != 0 {
				t.Errorf("%d messages reached the policy", got)
			}
			c := w.counts()
			if c.Published != n || c.Failed != 0 {
				t.Errorf("counts %+v", c)
			}
			if name == "GOAWAY" && c.SendErrors != 0 {
				t.Errorf("%d calls failed", c.SendErrors)
			}
		})
	}
}

// counters are the sink's of a job, by name.
func counters(result beam.PipelineResult) map[string]int64 {
	out := make(map[string]int64)
	for _, c := range result.Metrics().Query(func(m beam.MetricResult) bool { return m.Namespace() == "pubsubio.sink" }).Counters() {
		out[c.Name()] += c.Result()
	}
	return out
}

// Beam's metrics tell what happened once the job has ended, those of the process at
// every moment.
func TestSink_MetricsTellOfEveryRecordOnce(t *testing.T) {
	parallel(t)
	const n, badOnes = 1000, 3
	o := oneRequest()
	o.PerDestinationMetrics, o.BatchElementCount, o.BatchDelay = true, 100, time.Millisecond
	o.RecoveryInitialBackoff, o.RetryInitialDelay = 10*time.Millisecond, 10*time.Millisecond
	at, w, route := outageOf(t, n, o)
	must(t, at.srv.DeleteTopic(w.sink.Topic)) // it is created again
	topic := w.sink.Topic
	at.srv.RefuseMessages(topic, bad)
	away := at.srv.Order(pubsubtest.Rule{Method: "Publish", Times: 2}, pubsubtest.Fail(status.Error(codes.Unavailable, "away")))
	makeBad(w.messages, 10, 310, 999)
	gate := make(chan struct{})
	w.probe.before = func(ctx context.Context, m *message.Message) error {
		if string(m.Data) != string(w.messages[600].Data) {
			return nil
		}
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var result beam.PipelineResult
	p := w.build()
	j := start(t, time.Minute, func(ctx context.Context) error {
		awaitTurn(ctx)
		var err error
		result, err = pubsubio.RunWithMetrics(ctx, p)
		return err
	})
	ctx := within(t, 30*time.Second)
	for w.counts().Published < 598 {
		work(ctx, 5*time.Millisecond)
		j.running(t)
		must(t, ctx.Err())
	}
	if c := w.counts(); c.Published != 598 || c.TopicsCreated != 1 || c.SendErrors < 3 {
		t.Errorf("in the middle: %+v", c)
	}
	close(gate)
	must(t, j.wait())
	expectGoodOnce(t, w.messages, at.messages(topic))
	if got := len(route.list()); got != badOnes {
		t.Errorf("%d messages were routed", got)
	}
	c, m := w.counts(), counters(result)
	var bytes int64
	for _, msg := range w.messages {
		if !bad(msg) {
			bytes += int64(len(msg.Data)) + 4 // data and message, each with tag and length
		}
	}
	for name, want := range map[string]int64{
		"recordsSend": n - badOnes, "bytesSend": bytes, "recordsFailed": badOnes, "topicsCreated": 1, "publisherShutdownsAbandoned": 0,
		"errorClass.UNAVAILABLE.errors":         away.Fired(),
		"destination." + topic + ".recordsSend": n - badOnes,
		"destination." + topic + ".bytesSend":   bytes,
		"destination." + topic + ".sendErrors":  m["sendErrors"],
		"sendErrors":                            m["errorClass.UNAVAILABLE.errors"] + m["errorClass.NOT_FOUND.errors"] + m["errorClass.INVALID_ARGUMENT.errors"],
	} {
		if m[name] != want {
			t.Errorf("%s = %d, want %d", name, m[name], want)
		}
	}
	if m["errorClass.NOT_FOUND.errors"] == 0 || m["errorClass.INVALID_ARGUMENT.errors"] < badOnes {
		t.Errorf("errors by class: %v", m)
	}
	if c.Published != n-badOnes || c.PublishedBytes != bytes || c.Failed != badOnes || c.SendErrors != m["sendErrors"] || c.TopicsCreated != 1 {
		t.Errorf("counts %+v, metrics %v", c, m)
	}
}
