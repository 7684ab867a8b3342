package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func init() {
	sink.RegisterHandler(routeToTest)
	sink.RegisterResolver(topicOfAttribute)
	dlq.Register[testQueue]()
	register.Function1x0(noteEmitted)
}

// topicAttribute is the attribute by which topicOfAttribute chooses.
const topicAttribute = "topic"

// topicOfAttribute sends each message to the topic that it names.
func topicOfAttribute(m *message.Message, _ time.Time) (string, error) {
	return m.Attributes[topicAttribute], nil
}

// A writing is a pipeline that publishes messages, in one bundle, unless its fields
// say otherwise.
type writing struct {
	sink     sink.Config
	messages []*message.Message
	probe    *probe
	failed   bool // consume Result.Failed

	pipeline *beam.Pipeline
}

// build builds the pipeline, so that its counts can be asked for.
func (w *writing) build() *beam.Pipeline {
	p, s := beam.NewPipelineWithRoot()
	col := beam.CreateList(s, w.messages)
	if w.probe != nil {
		col = w.probe.apply(s, col)
	}
	result := sink.Write(s, w.sink, sink.Message, col)
	if w.failed {
		beam.ParDo0(s, noteEmitted, result.Failed)
	}
	w.pipeline = p
	return p
}

// run runs the pipeline to its end.
func (w *writing) run(ctx context.Context) error { return runPipeline(ctx, w.build()) }

// counts are those of the run so far.
func (w *writing) counts() pubsubio.Counts { return pubsubio.CountsOf(w.pipeline) }

// numberedMessages returns messages whose data are their numbers.
func numberedMessages(n int) []*message.Message {
	messages := make([]*message.Message, n)
	for i := range messages {
		messages[i] = &message.Message{Data: fmt.Appendf(nil, "%07d", i)}
	}
	return messages
}

// A place is a Pub/Sub to write to.
type place struct {
	endpoint    string
	createTopic func(name string)
	// messages returns what was published to a topic, once.
	messages func(topic string) []*pubsubMessage
	srv      *pubsubtest.Server // nil for the emulator
}

// A pubsubMessage is what both kinds of places say of a message.
type pubsubMessage struct {
	Data, OrderingKey string
	Attributes        map[string]string
}

// onBoth runs a test against the server of pubsubtest and Google's emulator, which
// enforces no limits.
func onBoth(t *testing.T, test func(t *testing.T, at *place)) {
	t.Helper()
	t.Run("server", func(t *testing.T) {
		parallel(t)
		test(t, placeOf(pubsubtest.New(t)))
	})
	t.Run("emulator", func(t *testing.T) {
		long(t)
		parallel(t)
		endpoint := emulator.Start(t)
		client := emulator.Dial(t, endpoint)
		subscription := func(topic string) string { return strings.Replace(topic, "/topics/", "/subscriptions/", 1) }
		test(t, &place{
			endpoint: endpoint,
			createTopic: func(name string) {
				client.CreateTopic(name)
				client.CreateSubscription(subscription(name), name)
			},
			messages: func(topic string) []*pubsubMessage {
				var out []*pubsubMessage
				for _, m := range client.Drain(subscription(topic)) {
					out = append(out, &pubsubMessage{string(m.GetData()), m.GetOrderingKey(), m.GetAttributes()})
				}
				return out
			},
		})
	})
}

// publishCalls is how many publish requests came, where that is told.
func (at *place) publishCalls() int64 {
	if at.srv == nil {
		return 0
	}
	return at.srv.Calls("Publish")
}

func placeOf(srv *pubsubtest.Server) *place {
	return &place{
		endpoint:    srv.Endpoint(),
		createTopic: srv.MustCreateTopic,
		messages: func(topic string) []*pubsubMessage {
			var out []*pubsubMessage
			for _, m := range srv.Messages(topic) {
				out = append(out, &pubsubMessage{string(m.Data), m.OrderingKey, m.Attributes})
			}
			return out
		},
		srv: srv,
	}
}

// routed is what the policies of a test were given. The workers find it by the
// destination of the failures, or by the name of the queue, which are the test's own.
type routed struct {
	sync.Mutex
	failed []sink.Failed
}

var (
	routes       sync.Map // of *routed
	routesNumber atomic.Int64
)

// newRoute returns the name of a topic of the test's own, and what the policies are
// given that is to go there.
func newRoute(t *testing.T) (string, *routed) {
	t.Helper()
	topic := fmt.Sprint("projects/integration/topics/sink-", routesNumber.Add(1))
	r := new(routed)
	routes.Store(topic, r)
	t.Cleanup(func() { routes.Delete(topic) })
	return topic, r
}

// take notes a failure for the test.
func take(f sink.Failed) error {
	r, ok := routes.Load(f.Destination)
	if !ok {
		return errors.New("no test writes to " + f.Destination)
	}
	to := r.(*routed)
	to.Lock()
	defer to.Unlock()
	to.failed = append(to.failed, f)
	return nil
}

// list returns what was taken so far, ordered by its data.
func (r *routed) list() []sink.Failed {
	r.Lock()
	defer r.Unlock()
	return slices.SortedFunc(slices.Values(r.failed), func(a, b sink.Failed) int {
		return cmp.Compare(string(a.Message.Data), string(b.Message.Data))
	})
}

func routeToTest(_ context.Context, f sink.Failed) error { return take(f) }

func noteEmitted(f sink.Failed) { _ = take(f) }

// testQueue is a dead-letter queue that keeps its letters for the test whose topic
// it has. What was offered and not flushed is not among them.
type testQueue struct{ Topic string }

func (testQueue) Validate() error { return nil }

func (q testQueue) Open(context.Context, string) (dlq.Writer, error) { return &testWriter{}, nil }

func (testQueue) Close(string) error { return nil }

type testWriter struct{ letters []dlq.Letter }

func (w *testWriter) Offer(_ context.Context, l dlq.Letter) error {
	w.letters = append(w.letters, l)
	return nil
}

func (w *testWriter) Flush(context.Context) error {
	for _, l := range w.letters {
		err := take(sink.Failed{
			Message: l.Message, Record: l.Record, Destination: l.Destination, Error: l.Error,
			Attempts: l.Attempts, Time: l.Time, EventTime: l.EventTime,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *testWriter) Drop() {}

// A disposal is a failure policy and what it does with a bad record.
type disposal struct {
	policy func(topic string) sink.FailurePolicy
	fails  bool // the job
	gives  bool // the failure to the test
	status bool // with the status beside the text
}

// disposals are all the policies.
var disposals = map[string]disposal{
	"Fail":       {policy: func(string) sink.FailurePolicy { return sink.Fail() }, fails: true},
	"LogAndDrop": {policy: func(string) sink.FailurePolicy { return sink.LogAndDrop() }},
	"EmitFailed": {policy: func(string) sink.FailurePolicy { return sink.EmitFailed() }, gives: true, status: true},
	"HandleWith": {policy: func(string) sink.FailurePolicy { return sink.HandleWith(routeToTest) }, gives: true, status: true},
	"SendTo":     {policy: func(topic string) sink.FailurePolicy { return sink.SendTo(testQueue{topic}) }, gives: true},
}

// bad reports whether the topic's schema refuses a message: one with that attribute.
func bad(m *message.Message) bool { _, ok := m.Attributes["bad"]; return ok }

// makeBad gives the messages of those numbers the attribute.
func makeBad(messages []*message.Message, numbers ...int) {
	for _, i := range numbers {
		messages[i].Attributes = map[string]string{"bad": "yes", "number": fmt.Sprint(i)}
	}
}

// oneRequest makes a bundle of up to a thousand messages one request, which the end
// of the bundle sends.
func oneRequest() options.Publisher {
	return options.Publisher{
		BatchElementCount: 1000, BatchDelay: time.Minute,
		MaxInFlightMessages: 2000, MaxConsecutiveRejections: options.Unbounded,
	}
}

// expectGoodOnce checks that exactly the good messages arrived, each once.
func expectGoodOnce(t *testing.T, messages []*message.Message, arrived []*pubsubMessage) {
	t.Helper()
	times := make(map[string]int)
	for _, m := range arrived {
		times[m.Data]++
	}
	for _, m := range messages {
		want := 1
		if bad(m) {
			want = 0
		}
		if got := times[string(m.Data)]; got != want {
			t.Errorf("message %.20s (bad: %v) was published %d times, not %d", m.Data, bad(m), got, want)
		}
		delete(times, string(m.Data))
	}
	if len(times) != 0 {
		t.Errorf("what nobody wrote was published: %v", times)
	}
}

// expectRouted checks what a policy was given of the bad messages: each whole, once,
// with its topic, the service's status, the text and a time.
func expectRouted(t *testing.T, d disposal, topic string, messages []*message.Message, given []sink.Failed) {
	t.Helper()
	var want []*message.Message
	for _, m := range messages {
		if bad(m) && d.gives {
			want = append(want, m)
		}
	}
	if len(given) != len(want) {
		t.Fatalf("%d failures were routed, not %d", len(given), len(want))
	}
	for i, f := range given {
		if diff := gocmp.Diff(want[i], f.Message); diff != "" {
			t.Errorf("the message (-want +got):\n%s", diff)
		}
		if f.Destination != topic || f.Attempts < 1 || time.Since(f.Time) > time.Hour || f.EventTime.IsZero() || f.Record != nil {
			t.Errorf("routed as %+v", f)
		}
		if !strings.Contains(f.Error, "publish to "+topic+": InvalidArgument") {
			t.Errorf("the error is %q", f.Error)
		}
		if d.status && (f.Code != codes.InvalidArgument || f.Status == "" || f.Rule != "") {
			t.Errorf("of status %v, %q, rule %q", f.Code, f.Status, f.Rule)
		}
	}
}

// expectEnd checks how a job with bad records ended under a policy.
func (d disposal) expectEnd(t *testing.T, topic string, badOnes int, err error) {
	t.Helper()
	if !d.fails {
		must(t, err)
		return
	}
	expectError(t, err, topic, "InvalidArgument", fmt.Sprintf("%d of the bundle's records failed, the others were published", badOnes))
}

// A request is refused whole, and the answer names no message: one bad message took
// 999 good ones with it.
func TestSink_C29_BadMessagesAreFoundAmongAThousand(t *testing.T) {
	const n = 1000
	perBad := 2*math.Log2(n) + 2
	for name, numbers := range map[string][]int{
		"one":       {617},
		"first":     {0},
		"last":      {n - 1},
		"scattered": {3, 98, 207, 305, 404, 509, 611, 703, 888, 999},
		"adjacent":  {495, 496, 497, 498, 499, 500, 501, 502, 503, 504},
	} {
		for policy, d := range disposals {
			if len(numbers) == 1 && numbers[0] != 617 && policy != "HandleWith" {
				continue // the place in the request is nothing to the policy
			}
			t.Run(name+", "+policy, func(t *testing.T) {
				parallel(t)
				at := placeOf(pubsubtest.New(t))
				topic, route := newRoute(t)
				at.createTopic(topic)
				at.srv.RefuseMessages(topic, bad)
				messages := numberedMessages(n)
				makeBad(messages, numbers...)
				w := &writing{
					sink:     sink.Config{Topic: topic, EmulatorEndpoint: at.endpoint, OnFailure: d.policy(topic), Publisher: oneRequest()},
					messages: messages, failed: policy == "EmitFailed",
				}
				d.expectEnd(t, topic, len(numbers), w.run(within(t, time.Minute)))
				expectGoodOnce(t, messages, at.messages(topic))
				expectRouted(t, d, topic, messages, route.list())
				if further, most := at.srv.Calls("Publish")-1, int64(perBad)*int64(len(numbers)); further > most {
					t.Errorf("%d requests after the refused one, more than %d", further, most)
				}
				if c := w.counts(); c.Failed != int64(len(numbers)) || c.Published != n-int64(len(numbers)) {
					t.Errorf("counts %+v", c)
				}
			})
		}
	}
}

// Without a guardrail every message goes to the policy, and the job ends as that says.
func TestSink_C35_AllBad(t *testing.T) {
	const n = 100
	for policy, d := range disposals {
		t.Run(policy, func(t *testing.T) {
			parallel(t)
			at := placeOf(pubsubtest.New(t))
			topic, route := newRoute(t)
			at.createTopic(topic)
			at.srv.RefuseMessages(topic, bad)
			messages := numberedMessages(n)
			for i := range n {
				makeBad(messages, i)
			}
			w := &writing{
				sink:     sink.Config{Topic: topic, EmulatorEndpoint: at.endpoint, OnFailure: d.policy(topic), Publisher: oneRequest()},
				messages: messages, failed: policy == "EmitFailed",
			}
			d.expectEnd(t, topic, n, w.run(within(t, time.Minute)))
			expectGoodOnce(t, messages, at.messages(topic))
			expectRouted(t, d, topic, messages, route.list())
			if got := at.srv.Calls("Publish"); got > 2*n {
				t.Errorf("%d requests for %d messages", got, n)
			}
			if c := w.counts(); c.Failed != n || c.Published != 0 {
				t.Errorf("counts %+v", c)
			}
		})
	}
}

// A topic whose schema refuses every message: a dropping policy would empty the
// pipeline into nothing.
func TestSink_C35_TheGuardrailEndsADroppingPolicy(t *testing.T) {
	parallel(t)
	at := placeOf(pubsubtest.New(t))
	topic, route := newRoute(t)
	at.createTopic(topic)
	at.srv.RefuseMessages(topic, func(*message.Message) bool { return true })
	w := &writing{
		sink: sink.Config{
			Topic: topic, EmulatorEndpoint: at.endpoint, OnFailure: sink.HandleWith(routeToTest),
			Publisher: options.Publisher{BatchElementCount: 1, MaxConsecutiveRejections: 7, MaxInFlightMessages: 1},
		},
		messages: numberedMessages(1000),
	}
	expectError(t, w.run(within(t, time.Minute)), "7 messages in a row were rejected", "options.Publisher.MaxConsecutiveRejections", "InvalidArgument", topic)
	if got := len(route.list()); got != 7 {
		t.Errorf("%d messages were routed, not 7: the one that trips goes first", got)
	}
	// One more may have been on its way when the seventh was refused.
	if got := at.srv.Calls("Publish"); got > 8 {
		t.Errorf("%d requests", got)
	}
}

// A bad message in a key's run leaves a gap where it was; the others keep their
// order, and other keys are not touched.
func TestSink_ABadMessageInAKeysRunLeavesTheOrderOfTheRest(t *testing.T) {
	const n, keys = 600, 3
	for policy, d := range disposals {
		t.Run(policy, func(t *testing.T) {
			parallel(t)
			at := placeOf(pubsubtest.New(t))
			topic, route := newRoute(t)
			at.createTopic(topic)
			at.srv.RefuseMessages(topic, bad)
			messages := numberedMessages(n)
			makeBad(messages, 301) // in the middle of key 1
			for i, m := range messages {
				m.OrderingKey = fmt.Sprint("key ", i%keys)
			}
			o := oneRequest()
			o.EnableMessageOrdering = true
			w := &writing{
				sink:     sink.Config{Topic: topic, EmulatorEndpoint: at.endpoint, OnFailure: d.policy(topic), Publisher: o},
				messages: messages, failed: policy == "EmitFailed",
			}
			err := w.run(within(t, time.Minute))
			arrived := at.messages(topic)
			expectKeysInOrder(t, arrived)
			if d.fails {
				// The bundle comes again, with the message mended: what comes after it on
				// its key must not be stored before.
				expectError(t, err, topic, "InvalidArgument")
				for _, m := range arrived {
					if m.OrderingKey == "key 1" && m.Data > string(messages[301].Data) {
						t.Errorf("%s was stored after the message that fails the bundle", m.Data)
					}
				}
			} else {
				d.expectEnd(t, topic, 1, err)
				expectGoodOnce(t, messages, arrived)
				expectRouted(t, d, topic, messages, route.list())
			}
			if l := at.srv.PublishLoad(topic); l.MaxKeyCalls != 1 {
				t.Errorf("%d calls at once for %s", l.MaxKeyCalls, l.BusiestKey)
			}
		})
	}
}

// expectKeysInOrder checks that of each key the numbers in the data never fall.
func expectKeysInOrder(t *testing.T, arrived []*pubsubMessage) {
	t.Helper()
	last := make(map[string]string)
	for _, m := range arrived {
		if m.Data <= last[m.OrderingKey] {
			t.Errorf("%s: %s came after %s", m.OrderingKey, m.Data, last[m.OrderingKey])
		}
		last[m.OrderingKey] = m.Data
	}
}

// A bad message and a missing topic in one bundle: each is mended in its own way.
func TestSink_ABadMessageBesideAMissingTopic(t *testing.T) {
	for _, same := range []bool{true, false} {
		for policy, d := range disposals {
			t.Run(fmt.Sprintf("same topic %v, %s", same, policy), func(t *testing.T) {
				parallel(t)
				at := placeOf(pubsubtest.New(t))
				topic, route := newRoute(t)
				missing := topic
				if !same {
					at.createTopic(topic)
					missing, _ = newRoute(t)
				}
				at.srv.RefuseMessages(topic, bad)
				messages := numberedMessages(200)
				makeBad(messages, 50)
				for i, m := range messages {
					if m.Attributes == nil {
						m.Attributes = make(map[string]string)
					}
					m.Attributes[topicAttribute] = topic
					if i%2 == 1 {
						m.Attributes[topicAttribute] = missing
					}
				}
				o := oneRequest()
				o.RecoveryInitialBackoff = 10 * time.Millisecond
				w := &writing{
					sink: sink.Config{
						Resolve: sink.ResolveWith(topicOfAttribute), EmulatorEndpoint: at.endpoint,
						OnFailure: d.policy(topic), Publisher: o,
					},
					messages: messages, failed: policy == "EmitFailed",
				}
				d.expectEnd(t, topic, 1, w.run(within(t, time.Minute)))
				arrived := at.messages(topic)
				if !same {
					arrived = append(arrived, at.messages(missing)...)
				}
				expectGoodOnce(t, messages, arrived)
				expectRouted(t, d, topic, messages, route.list())
				if got := at.srv.Calls("CreateTopic"); got != 1 {
					t.Errorf("%d creations", got)
				}
			})
		}
	}
}

// Messages that break a rule of the service stop nothing: they are not sent, cost no
// request, and the failure names the rule and shows no value.
func TestSink_C29_C30_MessagesThatBreakARuleBesideNinetyNine(t *testing.T) {
	onBoth(t, func(t *testing.T, at *place) {
		t.Helper()
		for name, c := range map[string]struct {
			bad  *message.Message
			rule string
		}{
			"long value":      {&message.Message{Data: []byte("b"), Attributes: map[string]string{"bad": strings.Repeat("v", 1025)}}, `the value of attribute "bad" has 1025 bytes, the limit is 1024`},
			"empty":           {&message.Message{}, "it is empty"},
			"invalid UTF-8":   {&message.Message{Data: []byte("b"), Attributes: map[string]string{"a\xc5z": "v", "bad": ""}}, `the key of attribute "a\xc5z" is not valid UTF-8`},
			"over the limit":  {&message.Message{Data: make([]byte, options.MaxRequestBytes)}, "the limit is 10000000"},
			"many attributes": {&message.Message{Data: []byte("b"), Attributes: attributes(101)}, "101 attributes, the limit is 100"},
		} {
			t.Run(name, func(t *testing.T) {
				topic, route := newRoute(t)
				at.createTopic(topic)
				good := numberedMessages(99)
				w := &writing{
					sink:     sink.Config{Topic: topic, EmulatorEndpoint: at.endpoint, OnFailure: sink.EmitFailed(), Publisher: oneRequest()},
					messages: slices.Insert(slices.Clone(good), 50, c.bad), failed: true,
				}
				before := at.publishCalls()
				must(t, w.run(within(t, time.Minute)))
				expectGoodOnce(t, good, at.messages(topic))
				if calls := at.publishCalls() - before; at.srv != nil && calls != 1 {
					t.Errorf("%d requests", calls)
				}
				given := route.list()
				if len(given) != 1 {
					t.Fatalf("%d failures", len(given))
				}
				f := given[0]
				if !strings.Contains(f.Rule, c.rule) || !strings.Contains(f.Error, "publish to "+topic) || f.Code != codes.OK || f.Attempts != 0 {
					t.Errorf("failed with rule %q, error %q, status %v, %d attempts", f.Rule, f.Error, f.Code, f.Attempts)
				}
				if strings.Contains(f.Error, "vvvv") {
					t.Errorf("the text shows the value: %s", f.Error)
				}
				if len(f.Message.Data) != len(c.bad.Data) || len(f.Message.Attributes) != len(c.bad.Attributes) {
					t.Errorf("the message is not whole: %d bytes, %d attributes", len(f.Message.Data), len(f.Message.Attributes))
				}
			})
		}
	})
}

func attributes(n int) map[string]string {
	out := make(map[string]string, n)
	for i := range n {
		out[fmt.Sprint("key ", i)] = "v"
	}
	return out
}
