package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/metrics"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// Where dead letters go, and whence they are read.
const (
	deadTopic = "projects/integration/topics/dead"
	deadSub   = "projects/integration/subscriptions/dead"
)

func init() {
	sink.RegisterEncoder(encodeNumber)
	sink.RegisterResolver(toDeadTopic)
	beam.RegisterType(reflect.TypeFor[unfit]())
	register.Function2x0(giveUp)
	register.Emitter1[unfit]()
}

// encodeNumber refuses what ends in 7, and makes what ends in 8 a message that the
// service refuses.
func encodeNumber(m *message.Message) (*message.Message, error) {
	switch {
	case strings.HasSuffix(string(m.Data), "7"):
		return nil, errors.New("an unlucky number")
	case strings.HasSuffix(string(m.Data), "8"):
		return message.New(m.Data).WithAttribute("a\xc5z", "v"), nil
	}
	return message.New(m.Data), nil
}

// An unfit is what a transform of a user gives up.
type unfit struct{ Data []byte }

func (u unfit) DeadLetter() dlq.Letter {
	return dlq.Letter{Connector: "test", Destination: "nowhere", Message: message.New(u.Data), Error: "unfit"}
}

func giveUp(m *message.Message, emit func(unfit)) { emit(unfit{m.Data}) }

// newDeadServer is newServer with a dead-letter topic that is read.
func newDeadServer(t *testing.T) (*pubsubtest.Server, dlq.Config) {
	t.Helper()
	srv := newServer(t)
	srv.MustCreateTopic(deadTopic)
	srv.MustCreateSubscription(deadSub, deadTopic)
	return srv, dlq.Config{Topic: deadTopic, EmulatorEndpoint: srv.Endpoint()}
}

// letters are the entries in the dead-letter topic.
func letters(srv *pubsubtest.Server) []dlq.Entry {
	var out []dlq.Entry
	for _, m := range srv.Messages(deadTopic) {
		out = append(out, dlq.Decode(m))
	}
	return out
}

// expectLetters checks that the letters hold the data of each of those numbers, and
// what else ok asks of them.
func expectLetters(t *testing.T, entries []dlq.Entry, want []int, ok func(e dlq.Entry) bool) {
	t.Helper()
	var got, wanted []string
	for _, e := range entries {
		data := e.Record
		if e.Message != nil {
			data = e.Message.Data
		}
		if e.Kind != dlq.Envelope || !ok(e) {
			t.Errorf("a letter is %+v", e)
		}
		got = append(got, string(data))
	}
	slices.Sort(got)
	for _, n := range want {
		wanted = append(wanted, fmt.Sprintf("%07d", n))
	}
	if got = slices.Compact(got); !slices.Equal(got, wanted) { // a bundle that is run again sends again
		t.Errorf("%d letters %v, want %v", len(got), got, wanted)
	}
}

// lastDigits are the numbers under n that end in one of the digits.
func lastDigits(n int, digits ...int) []int {
	var out []int
	for i := range n {
		if slices.Contains(digits, i%10) {
			out = append(out, i)
		}
	}
	return out
}

// counterOf returns what a pipeline's Beam counter has counted.
func counterOf(result beam.PipelineResult, name string) int64 {
	for _, c := range result.Metrics().Query(func(r metrics.SingleResult) bool {
		return r.Namespace() == "pubsubio.dlq" && r.Name() == name
	}).Counters() {
		return c.Result()
	}
	return 0
}

func TestDeadLetters_OfASink(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		t.Helper()
		const n = 200
		srv, queue := newDeadServer(t)
		publish(t, srv, inTopic, 0, n)
		r := relayOf(srv, options.Limit{MaxMessages: n})
		r.sink.OnFailure = sink.SendTo(queue)
		p, s := beam.NewPipelineWithRoot()
		sink.Write(s, r.sink, encodeNumber, source.Read(s, r.source, source.Message))
		must(t, runPipeline(within(t, 40*time.Second), p))

		bad := lastDigits(n, 7, 8)
		var records, messages []dlq.Entry
		for _, e := range letters(srv) {
			if e.Record != nil {
				m, err := dlq.RecordOf[*message.Message](e)
				must(t, err)
				e.Message, e.Record = m, nil
				records = append(records, e)
			} else {
				messages = append(messages, e)
			}
		}
		of := func(text string) func(dlq.Entry) bool {
			return func(e dlq.Entry) bool {
				return e.Connector == "pubsubio.sink" && e.Destination == outTopic && strings.Contains(e.Error, text) && e.Hops == 1
			}
		}
		expectLetters(t, records, lastDigits(n, 7), of("an unlucky number"))
		expectLetters(t, messages, lastDigits(n, 8), func(e dlq.Entry) bool {
			return of(`the key of attribute "a\xc5z" is not valid UTF-8`)(e) && e.Message.Attributes["a\xc5z"] == "v"
		})
		if got := len(data(srv.Messages(outTopic))); got != n-len(bad) {
			t.Errorf("%d of %d good ones arrived", got, n-len(bad))
		}
		if s := srv.Stats(inSub); s.Acknowledged != n {
			t.Errorf("want everything acknowledged: %+v", s)
		}
		c := pubsubio.CountsOf(p)
		if c.DeadLettersPublished < int64(len(bad)) || c.DeadLetters < int64(len(bad)) || c.OutstandingDeadLetters != 0 || c.LongestDeadLetterFlush <= 0 {
			t.Errorf("counted %+v", c)
		}
	})
}

func TestDeadLetters_OfASource(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		t.Helper()
		const n = 100
		srv, queue := newDeadServer(t)
		publish(t, srv, inTopic, 0, n)
		cfg := relayOf(srv, options.Limit{MaxMessages: n}).source
		cfg.OnDecodeFailure = source.SendTo(queue)
		p, _ := reading(cfg, decodePoison)
		must(t, runPipeline(within(t, 40*time.Second), p))
		expectLetters(t, letters(srv), lastDigits(n, 7), func(e dlq.Entry) bool {
			return e.Connector == "pubsubio.source" && e.Destination == inSub && e.Message.ID != "" && !e.Message.PublishTime.IsZero()
		})
		if s := srv.Stats(inSub); s.Acknowledged != n || s.Redelivered != 0 {
			t.Errorf("want everything acknowledged: %+v", s)
		}
		expectSettled(t, srv, inSub)
	})
}

// The letter is stored before its message is acknowledged, whatever comes between.
func TestDeadLetters_NoMessageIsAcknowledgedBeforeItsLetterIsStored(t *testing.T) {
	const n = 300
	for name, inFlight := range map[string]int{"default": 0, "write-through": dlq.WriteThrough, "unbounded": dlq.Unbounded} {
		t.Run(name, func(t *testing.T) {
			srv, queue := newDeadServer(t)
			queue.MaxInFlightMessages = inFlight
			publish(t, srv, inTopic, 0, n)
			srv.Order(pubsubtest.Rule{Method: "Publish", Probability: 0.3, Seed: 1}, pubsubtest.Fail(status.Error(codes.Unavailable, "flaky")))
			srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.WaitBetween(0, 20*time.Millisecond))
			cfg := relayOf(srv, options.Limit{MaxMessages: n}).source
			cfg.OnDecodeFailure = source.SendTo(queue)
			p, _ := reading(cfg, decodePoison)
			must(t, runPipeline(within(t, time.Minute), p))
			stored := make(map[string]bool)
			for _, e := range srv.Events() {
				switch {
				case e.Kind == pubsubtest.Publish && e.Topic == deadTopic:
					stored[dlq.Decode(e.Message()).Message.ID] = true
				case e.Kind == pubsubtest.Acknowledge && e.Subscription == inSub && strings.HasSuffix(string(e.Message().Data), "7"):
					if !stored[e.MessageID] {
						t.Errorf("message %s was acknowledged before its letter was stored", e.MessageID)
					}
				}
			}
			if srv.EventsDropped() > 0 || len(stored) != n/10 {
				t.Errorf("%d letters, %d events dropped", len(stored), srv.EventsDropped())
			}
		})
	}
}

// dlq.Write takes the failures of a sink, of a source, and of a transform of the user.
func TestDeadLetters_OfAnyCollectionOfFailures(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		t.Helper()
		const n = 100
		srv, queue := newDeadServer(t)
		publish(t, srv, inTopic, 0, n)
		r := relayOf(srv, options.Limit{MaxMessages: n})
		r.source.OnDecodeFailure, r.sink.OnFailure = source.EmitFailed(), sink.EmitFailed()
		p, s := beam.NewPipelineWithRoot()
		records, refused := source.ReadWithFailures(s, r.source, decodePoison) // which emits what it refuses, too
		dlq.Write(s, queue, refused)
		dlq.Write(s, queue, sink.Write(s, r.sink, encodeNumber, records).Failed)
		dlq.Write(s, queue, beam.ParDo(s, giveUp, records))
		must(t, runPipeline(within(t, time.Minute), p))

		by := make(map[string][]dlq.Entry)
		for _, e := range letters(srv) {
			if e.Record != nil {
				m, err := dlq.RecordOf[*message.Message](e)
				must(t, err)
				e.Message, e.Record = m, nil
			}
			by[e.Connector] = append(by[e.Connector], e)
		}
		all := func(dlq.Entry) bool { return true }
		expectLetters(t, by["pubsubio.source"], lastDigits(n, 7), all)
		expectLetters(t, by["pubsubio.sink"], lastDigits(n, 7, 8), all)
		expectLetters(t, by["test"], lastDigits(n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), func(e dlq.Entry) bool { return e.Error == "unfit" })
		if c := pubsubio.CountsOf(p); c.DeadLettersPublished < 10+20+100 {
			t.Errorf("counted %+v", c)
		}
	})
}

// The dead-letter topic is down: the bundle fails, everything is returned, and what
// the next run sends is whole.
func TestDeadLetters_AnOutageOfTheirTopicLosesNothing(t *testing.T) {
	const n = 50
	srv, queue := newDeadServer(t)
	publish(t, srv, inTopic, 0, n)
	outage := srv.Order(pubsubtest.Rule{Method: "Publish", Topic: deadTopic}, pubsubtest.Fail(status.Error(codes.Unavailable, "down")))
	r := relayOf(srv, options.Limit{MaxMessages: n})
	run := func(flushTimeout time.Duration) error {
		queue.FlushTimeout = flushTimeout
		r.sink.OnFailure = sink.SendTo(queue)
		p, s := beam.NewPipelineWithRoot()
		sink.Write(s, r.sink, encodeNumber, source.Read(s, r.source, source.Message))
		return runPipeline(within(t, 40*time.Second), p)
	}
	expectError(t, run(time.Second), "flush the dead-letter queue", "dlq.Config.FlushTimeout (1s) is over", "the last attempt, for "+deadTopic)
	if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Backlog != n || srv.Published(deadTopic) != 0 {
		t.Errorf("%d letters; want everything returned: %+v", srv.Published(deadTopic), s)
	}
	outage.Remove()
	must(t, run(30*time.Second))
	var found int
	for _, e := range letters(srv) {
		if e.Record != nil || strings.HasSuffix(string(e.Message.Data), "8") {
			found++
		}
	}
	if found < len(lastDigits(n, 7, 8)) || srv.Stats(inSub).Acknowledged != n {
		t.Errorf("%d letters, %+v", found, srv.Stats(inSub))
	}
}

// A queue that cannot work stops a job before it reads or publishes anything.
func TestDeadLetters_AMissingTopicStopsTheJobAtItsStart(t *testing.T) {
	const hint = "gcloud pubsub topics create dead --project=integration"
	srv := newServer(t)
	queue := dlq.Config{Topic: deadTopic, EmulatorEndpoint: srv.Endpoint()}
	publish(t, srv, inTopic, 0, 10)
	r := relayOf(srv, options.Limit{MaxMessages: 10})
	r.source.OnDecodeFailure = source.SendTo(queue)
	p, _ := reading(r.source, decodePoison)
	expectError(t, runPipeline(within(t, 30*time.Second), p), "source: OnDecodeFailure source.SendTo(dlq.Config): check the dead-letter queue", hint)
	if s := srv.Stats(inSub); s.Delivered != 0 {
		t.Errorf("the job has read: %+v", s)
	}

	r = relayOf(srv, options.Limit{MaxMessages: 10})
	r.sink.OnFailure = sink.SendTo(queue)
	expectError(t, r.run(within(t, 30*time.Second)), "sink: check the dead-letter queue", hint)
	if n := srv.Published(outTopic); n != 0 {
		t.Errorf("the job has published %d", n)
	}

	p, s := beam.NewPipelineWithRoot()
	dlq.Write(s, queue, beam.CreateList(s, []unfit{{[]byte("x")}}))
	expectError(t, runPipeline(within(t, 30*time.Second), p), "check the dead-letter queue", hint)
	if n := srv.Calls("CreateTopic"); n != 0 {
		t.Errorf("%d topics created", n)
	}
}

// toDeadTopic sends everything where the dead letters go.
func toDeadTopic(*message.Message, time.Time) (string, error) { return deadTopic, nil }

// A letter to the topic that refused its record would be refused, or go in circles.
func TestDeadLetters_LoopsAreRefused(t *testing.T) {
	srv, queue := newDeadServer(t)
	_, err := srv.Publish(deadTopic, message.New([]byte("poison 7")))
	must(t, err)
	r := relayOf(srv, options.Limit{MaxMessages: 1})

	// Where it is known, before anything runs.
	r.sink.Topic, r.sink.OnFailure = deadTopic, sink.SendTo(queue)
	_, s := beam.NewPipelineWithRoot()
	_, err = sink.TryWrite(s, r.sink, encodeNumber, source.Read(s, r.source, source.Message))
	expectError(t, err, "sink.Config.OnFailure", "must go to another topic")

	// Where a read is of that topic, when it starts.
	r.source.Subscriptions = source.From(deadSub)
	cfg := r.source
	cfg.OnDecodeFailure = source.SendTo(queue)
	p, _ := reading(cfg, decodePoison)
	expectError(t, runPipeline(within(t, 30*time.Second), p), deadSub, "its topic is that of the dead-letter queue")

	// Where the topic is chosen, when a record fails. Nothing is lost.
	r.sink.Topic, r.sink.Resolve = "", sink.ResolveWith(toDeadTopic)
	p, s = beam.NewPipelineWithRoot()
	sink.Write(s, r.sink, encodeNumber, source.Read(s, r.source, source.Message))
	expectError(t, runPipeline(within(t, 30*time.Second), p), "a record for "+deadTopic+" failed, which is the topic of its dead-letter queue")
	if s := srv.Stats(deadSub); s.Acknowledged != 0 || srv.Published(deadTopic) != 1 {
		t.Errorf("%d messages, %+v", srv.Published(deadTopic), s)
	}
}

// What the service takes as a message may not fit as a dead letter: it goes in parts,
// through the whole pipeline, and is read and joined again.
func TestDeadLetters_AMessageThatFillsARequestArrivesInParts(t *testing.T) {
	srv, queue := newDeadServer(t)
	largest := bytes.Repeat([]byte("7"), options.MaxRequestBytes-len(inTopic)-2-5-5)
	_, err := srv.Publish(inTopic, message.New(largest))
	must(t, err)
	cfg := relayOf(srv, options.Limit{MaxMessages: 1}).source
	cfg.OnDecodeFailure = source.SendTo(queue)
	p, _ := reading(cfg, decodePoison)
	must(t, runPipeline(within(t, 40*time.Second), p))
	whole, err := dlq.Join(letters(srv)...)
	must(t, err)
	if !bytes.Equal(whole.Message.Data, largest) || len(letters(srv)) != 2 || srv.Stats(inSub).Acknowledged != 1 {
		t.Errorf("%d parts of %d bytes, %+v", len(letters(srv)), len(whole.Message.Data), srv.Stats(inSub))
	}
}

// keepEntry keeps what a pipeline has read of dead letters.
func keepEntry(e dlq.Entry) {
	kept.Lock()
	defer kept.Unlock()
	kept.entries = append(kept.entries, e)
}

func init() { register.Function1x0(keepEntry) }

// A subscription of a dead-letter topic has envelopes, what Pub/Sub has forwarded, and
// what anybody else has put there; all go through a shuffle.
func TestDeadLetters_AreReadBackWhoeverHasSentThem(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		t.Helper()
		srv, queue := newDeadServer(t)
		must(t, srv.DeleteSubscription(inSub))
		srv.MustCreateSubscription(inSub, inTopic, pubsubtest.DeadLetters(deadTopic, 5))
		publish(t, srv, inTopic, 0, 1)
		cfg := relayOf(srv, options.Limit{MaxMessages: 5}).source
		cfg.OnDecodeFailure, cfg.NackDelay = source.Nack(), options.Disabled
		p, s := beam.NewPipelineWithRoot()
		source.Read(s, cfg, decodeNothing)
		must(t, runPipeline(within(t, 30*time.Second), p))
		must(t, srv.AwaitPublished(within(t, 20*time.Second), deadTopic, 1))
		_, err := srv.Publish(deadTopic, message.New([]byte("by hand")))
		must(t, err)
		p, s = beam.NewPipelineWithRoot()
		dlq.Write(s, queue, beam.CreateList(s, []unfit{{[]byte("mine")}}))
		must(t, runPipeline(within(t, 30*time.Second), p))

		cfg = relayOf(srv, options.Limit{MaxMessages: 3}).source
		cfg.Subscriptions = source.From(deadSub)
		p, s = beam.NewPipelineWithRoot()
		beam.ParDo0(s, keepEntry, beam.Reshuffle(s, source.Read(s, cfg, dlq.Entries)))
		must(t, runPipeline(within(t, 30*time.Second), p))
		kept.Lock()
		defer kept.Unlock()
		var got []string
		for _, e := range kept.entries {
			got = append(got, fmt.Sprintf("%v %s of %q: %s", e.Kind, e.Message.Data, e.Destination, e.Error))
		}
		slices.Sort(got)
		want := []string{
			`envelope mine of "nowhere": unfit`,
			`foreign by hand of "": `,
			`forwarded 0000000 of "` + inSub + `": not acknowledged in 5 deliveries`,
		}
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
	})
}

// decodeNothing refuses every message.
func decodeNothing(*message.Message, func(*message.Message)) error { return errors.New("no") }

func init() { source.RegisterDecoder(decodeNothing) }

// The metrics of the queue, as Beam reports them.
func TestDeadLetters_AreCountedByBeam(t *testing.T) {
	srv, queue := newDeadServer(t)
	p, s := beam.NewPipelineWithRoot()
	dlq.Write(s, queue, beam.CreateList(s, []unfit{{[]byte("a")}, {[]byte("b")}, {[]byte("c")}}))
	awaitTurn(t.Context())
	result, err := pubsubio.RunWithMetrics(context.WithoutCancel(t.Context()), p)
	must(t, err)
	if n := counterOf(result, "deadLettersPublished"); n != 3 || srv.Published(deadTopic) != 3 {
		t.Errorf("deadLettersPublished is %d, %d are stored", n, srv.Published(deadTopic))
	}
	named := func(name string) func(metrics.SingleResult) bool {
		return func(r metrics.SingleResult) bool { return r.Namespace() == "pubsubio.dlq" && r.Name() == name }
	}
	all := result.Metrics()
	if d := all.Query(named("deadLetterFlushMillis")).Distributions(); len(d) != 1 || d[0].Result().Count < 1 {
		t.Errorf("deadLetterFlushMillis is %v", d)
	}
	for _, gauge := range []string{"outstandingDeadLetters", "longestDeadLetterFlushMillis"} {
		if g := all.Query(named(gauge)).Gauges(); len(g) != 1 || gauge == "outstandingDeadLetters" && g[0].Result().Value != 0 {
			t.Errorf("%s is %v", gauge, g)
		}
	}
}

// A regional endpoint is the queue's own, reached over TLS and under its name.
func TestDeadLetters_ARegionalEndpointIsReachedOverTLS(t *testing.T) {
	port, hello := shutOut(t)
	queue := dlq.Config{Topic: deadTopic, Endpoint: "localhost:" + port, ServiceAccountKeyFile: keyFileOf(t, keyOf(t))}
	w, err := queue.Open(t.Context(), t.Name())
	must(t, err)
	must(t, w.Offer(t.Context(), unfit{[]byte("x")}.DeadLetter()))
	select {
	case name := <-hello:
		if name != "localhost" {
			t.Errorf("TLS for %q", name)
		}
	case <-within(t, 30*time.Second).Done():
		t.Error("nobody came with TLS")
	}
	w.Drop()
	must(t, queue.Close(t.Name()))
}
