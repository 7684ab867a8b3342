package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() {
	source.RegisterDecoder(decodePoison)
	source.RegisterDecoder(decodeAtThird)
	source.RegisterDecoder(decodeOwnTime)
	source.RegisterDecoder(source.Proto[*wrapperspb.StringValue])
	dlq.Register[memoryQueue]()
	register.Function1x0(keepFailed)
	register.Function1x0(keepProto)
}

// decodePoison refuses every tenth message, by an error or a panic, after it has
// emitted it.
func decodePoison(m *message.Message, emit func(*message.Message)) error {
	emit(m)
	switch {
	case strings.HasSuffix(string(m.Data), "07"):
		panic("poison")
	case strings.HasSuffix(string(m.Data), "7"):
		return errors.New("poison")
	}
	return nil
}

// kept is what the last pipeline of a test has emitted beside its messages.
var kept struct {
	sync.Mutex // guards all below

	failed   []source.Failed
	protos   []string
	letters  []dlq.Letter
	entries  []dlq.Entry
	attempts []int
}

func resetKept() {
	kept.Lock()
	defer kept.Unlock()
	kept.failed, kept.protos, kept.letters, kept.entries, kept.attempts = nil, nil, nil, nil, nil
}

func keepFailed(f source.Failed) {
	kept.Lock()
	defer kept.Unlock()
	kept.failed = append(kept.failed, f)
}

func keepProto(s *wrapperspb.StringValue) {
	kept.Lock()
	defer kept.Unlock()
	kept.protos = append(kept.protos, s.GetValue())
}

// A memoryQueue is a dead-letter queue in this process.
type memoryQueue struct{}

func (memoryQueue) Validate() error                                  { return nil }
func (memoryQueue) Open(context.Context, string) (dlq.Writer, error) { return new(memoryWriter), nil }
func (memoryQueue) Close(string) error                               { return nil }

type memoryWriter struct{ letters []dlq.Letter }

func (w *memoryWriter) Offer(_ context.Context, l dlq.Letter) error {
	w.letters = append(w.letters, l)
	return nil
}

func (w *memoryWriter) Flush(context.Context) error {
	kept.Lock()
	defer kept.Unlock()
	kept.letters = append(kept.letters, w.letters...)
	return nil
}

func (w *memoryWriter) Drop() {}

// everywhere runs a test on prism and on the direct runner.
func everywhere(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	for _, runner := range []string{"prism", "direct"} {
		t.Run(runner, func(t *testing.T) {
			onRunner(t, runner)
			resetKept()
			f(t)
		})
	}
}

// reading builds a read that passes a probe, and keeps what failed.
func reading(cfg source.Config, decode source.DecodeFunc[*message.Message]) (*beam.Pipeline, *probe) {
	p, s := beam.NewPipelineWithRoot()
	records, failed := source.ReadWithFailures(s, cfg, decode)
	pr := new(probe)
	beam.ParDo0(s, drop, pr.apply(s, records))
	beam.ParDo0(s, keepFailed, failed)
	return p, pr
}

// deadLettered makes in's subscription one with a dead-letter policy.
func deadLettered(srv *pubsubtest.Server, maxAttempts int32) {
	const letters = "projects/integration/topics/letters"
	srv.MustCreateTopic(letters)
	if err := srv.DeleteSubscription(inSub); err != nil {
		panic(err)
	}
	srv.MustCreateSubscription(inSub, inTopic, pubsubtest.DeadLetters(letters, maxAttempts))
}

func TestPolicies_FailReturnsTheBundle(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		t.Helper()
		srv := newServer(t)
		publish(t, srv, inTopic, 0, 20)
		p, _ := reading(relayOf(srv, options.Limit{MaxMessages: 20}).source, decodePoison)
		expectError(t, runPipeline(within(t, 20*time.Second), p), "decode message", inSub, "poison")
		if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Backlog != 20 {
			t.Errorf("want everything returned: %+v", s)
		}
		expectSettled(t, srv, inSub)
	})
}

func TestPolicies_ThePolicyDisposesAndTheRestIsRead(t *testing.T) {
	const n, poison = 100, 10
	for name, c := range map[string]struct {
		policy source.FailurePolicy
		check  func(t *testing.T, c pubsubio.Counts)
	}{
		"Drop": {source.Drop(), func(t *testing.T, c pubsubio.Counts) {
			t.Helper()
			if c.MessagesDropped != poison {
				t.Errorf("dropped %d", c.MessagesDropped)
			}
		}},
		"EmitFailed": {source.EmitFailed(), func(t *testing.T, _ pubsubio.Counts) {
			t.Helper()
			expectPoison(t, len(kept.failed), func(i int) string { return string(kept.failed[i].Message.Data) })
		}},
		"SendTo": {source.SendTo(memoryQueue{}), func(t *testing.T, c pubsubio.Counts) {
			t.Helper()
			if c.MessagesDeadLettered != poison {
				t.Errorf("dead-lettered %d", c.MessagesDeadLettered)
			}
			expectPoison(t, len(kept.letters), func(i int) string { return string(kept.letters[i].Message.Data) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T) {
				t.Helper()
				srv := newServer(t)
				publish(t, srv, inTopic, 0, n)
				cfg := relayOf(srv, options.Limit{MaxMessages: n}).source
				cfg.OnDecodeFailure = c.policy
				p, pr := reading(cfg, decodePoison)
				must(t, runPipeline(within(t, 20*time.Second), p))
				counts := pubsubio.CountsOf(p)
				if counts.DecodeFailures != poison || counts.Read != n-poison || pr.passed.Load() != n {
					t.Errorf("%d records of %+v", pr.passed.Load(), counts)
				}
				c.check(t, counts)
				if s := srv.Stats(inSub); s.Acknowledged != n || s.Redelivered != 0 {
					t.Errorf("want everything acknowledged: %+v", s)
				}
				expectSettled(t, srv, inSub)
			})
		})
	}
}

// expectPoison checks that n pieces of data are those of the poison of a hundred.
func expectPoison(t *testing.T, n int, at func(i int) string) {
	t.Helper()
	var got []string
	for i := range n {
		got = append(got, at(i))
	}
	slices.Sort(got)
	var want []string
	for i := 7; i < 100; i += 10 {
		want = append(want, fmt.Sprintf("%07d", i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A message that could not be decoded lost its reason, or came for ever.
func TestPolicies_C25_ThreeBadProtosInAHundred(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		t.Helper()
		srv := newServer(t)
		var ms []*message.Message
		at := time.Now().Add(-time.Minute).Truncate(time.Millisecond).UTC()
		for i := range 100 {
			data, err := proto.Marshal(wrapperspb.String(fmt.Sprint(i)))
			must(t, err)
			if i%40 == 7 {
				data = append(data, 0x0a, 0xff)
			}
			ms = append(ms, &message.Message{Data: data, Attributes: map[string]string{"n": fmt.Sprint(i)}, OrderingKey: "key", PublishTime: at})
		}
		ids, err := srv.Publish(inTopic, ms...)
		must(t, err)
		cfg := relayOf(srv, options.Limit{MaxMessages: 100}).source
		cfg.OnDecodeFailure = source.EmitFailed()
		p, s := beam.NewPipelineWithRoot()
		records, failed := source.ReadWithFailures(s, cfg, source.Proto[*wrapperspb.StringValue])
		beam.ParDo0(s, keepProto, records)
		beam.ParDo0(s, keepFailed, failed)
		must(t, runPipeline(within(t, 20*time.Second), p))
		kept.Lock()
		defer kept.Unlock()
		if len(kept.protos) != 97 || len(kept.failed) != 3 {
			t.Fatalf("%d records and %d failures, want 97 and 3", len(kept.protos), len(kept.failed))
		}
		for _, f := range kept.failed {
			m := f.Message
			i := slices.Index(ids, m.ID)
			if i%40 != 7 || m.Attributes["n"] != fmt.Sprint(i) || m.OrderingKey != "key" || !m.PublishTime.Equal(at) || string(m.Data) != string(ms[i].Data) ||
				f.Subscription != inSub || !f.EventTime.Equal(at) || !strings.Contains(f.Error, m.ID) || !strings.Contains(f.Error, "protocol buffer: ") {
				t.Errorf("the failure of message %d is %+v of %+v", i, f, m)
			}
		}
		expectSettled(t, srv, inSub)
	})
}

// decodeAtThird refuses a message until it comes for the third time.
func decodeAtThird(m *message.Message, emit func(*message.Message)) error {
	kept.Lock()
	kept.attempts = append(kept.attempts, m.DeliveryAttempt)
	kept.Unlock()
	if m.DeliveryAttempt < 3 {
		return errors.New("not yet")
	}
	emit(m)
	return nil
}

// The delivery attempt was not visible.
func TestPolicies_C14_TheDecoderSeesTheDeliveryAttempt(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		t.Helper()
		srv := newServer(t)
		deadLettered(srv, 5)
		publish(t, srv, inTopic, 0, 1)
		cfg := relayOf(srv, options.Limit{MaxMessages: 3}).source // each time that it comes
		cfg.OnDecodeFailure, cfg.NackDelay = source.Nack(), options.Disabled
		p, pr := reading(cfg, decodeAtThird)
		must(t, runPipeline(within(t, 20*time.Second), p))
		if want := []int{1, 2, 3}; !slices.Equal(kept.attempts, want) || pr.passed.Load() != 1 {
			t.Errorf("seen %v, %d records", kept.attempts, pr.passed.Load())
		}
		if s, c := srv.Stats(inSub), pubsubio.CountsOf(p); s.Acknowledged != 1 || s.Returned != 2 || c.MessagesNackedByPolicy != 2 || c.Returned != 2 {
			t.Errorf("%+v, %+v", s, c)
		}
		expectSettled(t, srv, inSub)
	})
}

// A nacked message came back at once: poison took every slot, and good messages
// waited behind it.
func TestPolicies_C11_PoisonIsPacedAndGoodMessagesAreRead(t *testing.T) {
	const second = 100 * time.Millisecond
	srv := newServer(t, func(c *pubsubtest.Config) { c.LeaseSecond = second })
	deadLettered(srv, 5)
	var ms []*message.Message
	for range 20 {
		ms = append(ms, &message.Message{Data: []byte("poison 7")})
	}
	_, err := srv.Publish(inTopic, ms...)
	must(t, err)
	for i := range 1000 {
		ms = append(ms[:0], &message.Message{Data: fmt.Appendf(nil, "good %d0", i)})
		_, err := srv.Publish(inTopic, ms...)
		must(t, err)
	}
	cfg := relayOf(srv, options.Limit{}).source
	cfg.Subscriber.MaxOutstandingMessages = 20
	cfg.OnDecodeFailure = source.Nack()
	p, _ := reading(cfg, decodePoison)
	j := start(t, time.Minute, func(ctx context.Context) error { return runPipeline(ctx, p) })
	must(t, srv.Await(within(t, 40*time.Second), inSub, func(s pubsubtest.Stats) bool { return s.Acknowledged >= 1000 && s.DeadLettered >= 20 }))
	j.running(t)
	delivered := make(map[string]time.Time)
	deliveries := 0
	pauses := []time.Duration{2: 0, 3: second, 4: 2 * second, 5: 4 * second} // before that delivery
	for _, e := range srv.Events() {
		if e.Kind != pubsubtest.Deliver || !strings.HasPrefix(string(e.Message().Data), "poison") {
			continue
		}
		deliveries++
		if before := delivered[e.MessageID]; !before.IsZero() && e.Time.Sub(before) < pauses[e.Attempt] {
			t.Errorf("delivery %d of %s came after %v, want %v", e.Attempt, e.MessageID, e.Time.Sub(before), pauses[e.Attempt])
		}
		delivered[e.MessageID] = e.Time
	}
	if deliveries != 20*5 || srv.EventsDropped() > 0 {
		t.Errorf("%d deliveries of poison, %d events are not kept", deliveries, srv.EventsDropped())
	}
	if s := srv.Stats(inSub); s.Acknowledged != 1000 || s.DeadLettered != 20 {
		t.Errorf("%+v", s)
	}
}

// decodeOwnTime gives a message the time in its JSON.
func decodeOwnTime(m *message.Message, emit func(source.Timed[*message.Message])) error {
	var v struct {
		TS time.Time `json:"ts"`
	}
	if err := json.Unmarshal(m.Data, &v); err != nil {
		return errors.New("no JSON with a time ts")
	}
	emit(source.At(v.TS, m))
	return nil
}

// pastTimes are times over the last hour, whose windows of a minute have all ended.
func pastTimes(n int) []time.Time {
	times := make([]time.Time, n)
	for i := range times {
		times[i] = time.Now().Add(-2*time.Minute - time.Duration(i*37%60)*time.Minute).Truncate(time.Millisecond)
	}
	return times
}

// An event time in the payload was refused as skewed, or came late.
func TestPrism_C09_WindowsByTheTimeOfTheDecoder(t *testing.T) {
	srv := newServer(t)
	times := pastTimes(200)
	for _, at := range times {
		_, err := srv.Publish(inTopic, &message.Message{Data: fmt.Appendf(nil, `{"ts":%q}`, at.Format(time.RFC3339Nano))})
		must(t, err)
	}
	countBy(t, srv, times, decodeOwnTime, nil)
}

func TestPrism_WindowsByTheTimestampAttribute(t *testing.T) {
	srv := newServer(t)
	times := pastTimes(200)
	for i, at := range times {
		value := fmt.Sprint(at.UnixMilli())
		if i%2 == 0 {
			value = strings.ToLower(at.In(time.FixedZone("", 5400)).Format(time.RFC3339Nano))
		}
		_, err := srv.Publish(inTopic, &message.Message{Data: []byte("x"), Attributes: map[string]string{"ts": value}})
		must(t, err)
	}
	countBy(t, srv, times, source.Message, func(c *source.Config) { c.TimestampAttribute = "ts" })
}

// Seconds where milliseconds are expected put everything into 1970, in silence.
func TestPrism_C10_SecondsLandIn1970AndAreCounted(t *testing.T) {
	srv := newServer(t)
	_, err := srv.Publish(inTopic, &message.Message{Data: []byte("x"), Attributes: map[string]string{"ts": "1586390400"}})
	must(t, err)
	c := countBy(t, srv, []time.Time{time.UnixMilli(1586390400)}, source.Message, func(c *source.Config) { c.TimestampAttribute = "ts" })
	if c.TimestampsInSeconds != 1 {
		t.Errorf("counted %d", c.TimestampsInSeconds)
	}
}

// countBy expects the messages of in to be counted in windows of a minute by those
// times.
func countBy[T any](t *testing.T, srv *pubsubtest.Server, times []time.Time, decode source.DecodeFunc[T], adjust func(*source.Config)) pubsubio.Counts {
	t.Helper()
	cfg := relayOf(srv, options.Limit{}).source
	cfg.WatermarkLag, cfg.WatermarkIdleTimeout = stretched(2*time.Second), stretched(time.Second)
	cfg.Subscriber.MaxRecordsPerBundle = 20
	if adjust != nil {
		adjust(&cfg)
	}
	y := newTally(t)
	p, s := beam.NewPipelineWithRoot()
	y.apply(s, source.Read(s, cfg, decode), time.Minute)
	j := start(t, time.Minute, func(ctx context.Context) error { return runPipeline(ctx, p) })
	y.await(within(t, 30*time.Second), t, len(times))
	j.running(t)
	y.expect(t, time.Minute, times...)
	return pubsubio.CountsOf(p)
}
