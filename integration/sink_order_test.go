package integration

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/window"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func init() {
	register.DoFn2x0[[]byte, func(beam.EventTime, string)](&keyedWords{})
	register.Emitter2[beam.EventTime, string]()
	sink.RegisterEncoder(encodeKeyedWord)
}

// keyedWords emits "key number", Each of every key, the keys in turn, each word Step
// later than the one before.
type keyedWords struct {
	Keys, Each int
	Step       time.Duration
}

func (fn *keyedWords) ProcessElement(_ []byte, emit func(beam.EventTime, string)) {
	at := mtime.FromTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for i := range fn.Each {
		for k := range fn.Keys {
			emit(at, fmt.Sprintf("k%d %d", k, i))
		}
		at = at.Add(fn.Step)
	}
}

func encodeKeyedWord(word string) (*message.Message, error) {
	return keyedWord(word), nil
}

// keyedWord is the message "key number" under its key.
func keyedWord(word string) *message.Message {
	key, _, _ := strings.Cut(word, " ")
	return &message.Message{Data: []byte(word), OrderingKey: key}
}

// passingFailures has every class of failure that passes happen to a part of the
// publishes.
func passingFailures(srv *pubsubtest.Server) {
	for i, act := range [][]pubsubtest.Action{
		{pubsubtest.Fail(status.Error(codes.Unavailable, "away"))},
		{pubsubtest.Fail(status.Error(codes.ResourceExhausted, "quota"))},
		{pubsubtest.Fail(status.Error(codes.NotFound, "Resource not found."))},
		{pubsubtest.Fail(status.Error(codes.Aborted, "conflict"))},
		{pubsubtest.CarryOut(), pubsubtest.Fail(status.Error(codes.DeadlineExceeded, "late"))},
		{pubsubtest.WaitBetween(0, 3*time.Millisecond)},
	} {
		srv.Order(pubsubtest.Rule{Method: "Publish", Probability: 0.01, Seed: uint64(i + 1)}, act...)
	}
}

func orderedSink(endpoint string, by options.OrderBy) sink.Config {
	return sink.Config{
		Topic: outTopic, EmulatorEndpoint: endpoint, OrderBy: by, OnFailure: sink.LogAndDrop(),
		Publisher: options.Publisher{
			EnableMessageOrdering: true, RetryInitialDelay: time.Millisecond, RetryMaxDelay: 5 * time.Millisecond,
			RecoveryInitialBackoff: time.Millisecond, RecoveryMaxBackoff: 5 * time.Millisecond,
		},
	}
}

// expectOrder checks that of each key the first copies are the numbers from 0 on, in
// order, but for those that end in a digit that is refused.
func expectOrder(t *testing.T, stored []*message.Message, keys, each int, refused string) {
	t.Helper()
	var want []int
	for i := range each {
		if refused == "" || !strings.HasSuffix(strconv.Itoa(i), refused) {
			want = append(want, i)
		}
	}
	got, seen := map[string][]int{}, map[string]bool{}
	for _, m := range stored {
		word := string(m.Data)
		if seen[word] {
			continue
		}
		seen[word] = true
		_, number, _ := strings.Cut(word, " ")
		n, err := strconv.Atoi(number)
		must(t, err)
		got[m.OrderingKey] = append(got[m.OrderingKey], n)
	}
	if len(got) != keys {
		t.Errorf("%d keys of %d", len(got), keys)
	}
	for key, numbers := range got {
		if !slices.Equal(numbers, want) {
			t.Fatalf("key %s: %d first copies of %d; %s", key, len(numbers), len(want), inversion(numbers))
		}
	}
}

// inversion tells where numbers stop to rise.
func inversion(numbers []int) string {
	for i := range numbers[1:] {
		if numbers[i+1] < numbers[i] {
			return fmt.Sprintf("out of order: %d", numbers[max(0, i-12):min(len(numbers), i+12)])
		}
	}
	return "in order"
}

// A hundred keys of a thousand records each, while requests fail in every way that
// passes and messages are refused: each key's first copies come in order, and the
// survivors keep theirs.
func TestSink_AHundredKeysKeepTheirOrder(t *testing.T) {
	long(t)
	const keys, each = 100, 1000
	for _, by := range []options.OrderBy{options.OrderInPlace, options.OrderByKey} {
		for name, build := range map[string]func(beam.Scope) beam.PCollection{
			"one time": func(s beam.Scope) beam.PCollection { return beam.ParDo(s, &keyedWords{keys, each, 0}, beam.Impulse(s)) },
			"falling times": func(s beam.Scope) beam.PCollection {
				return beam.ParDo(s, &keyedWords{keys, each, -time.Second}, beam.Impulse(s))
			},
			"windowed": func(s beam.Scope) beam.PCollection {
				words := beam.ParDo(s, &keyedWords{keys, each, time.Second}, beam.Impulse(s))
				return beam.WindowInto(s, window.NewFixedWindows(time.Minute), words)
			},
		} {
			t.Run(fmt.Sprint(by, " ", name), func(t *testing.T) {
				srv := newServer(t)
				// First: the first of several orders decides, and one of those below carries out.
				srv.RefuseMessages(outTopic, func(m *message.Message) bool { return strings.HasSuffix(string(m.Data), "77") })
				passingFailures(srv)
				p, s := beam.NewPipelineWithRoot()
				sink.Write(s, orderedSink(srv.Endpoint(), by), encodeKeyedWord, build(s))
				must(t, runPipeline(within(t, 2*time.Minute), p))
				expectOrder(t, srv.Messages(outTopic), keys, each, "77")
				if load := srv.PublishLoad(outTopic); load.MaxKeyCalls != 1 {
					t.Errorf("%d requests at once of key %s", load.MaxKeyCalls, load.BusiestKey)
				}
			})
		}
	}
}

// publishKeyed publishes the words of each key, the keys in turn.
func publishKeyed(t *testing.T, srv *pubsubtest.Server, keys, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		var messages []*message.Message
		for k := range keys {
			messages = append(messages, keyedWord(fmt.Sprintf("k%d %d", k, i)))
		}
		_, err := srv.Publish(inTopic, messages...)
		must(t, err)
	}
}

// A read in many bundles, and a write by key: the numbers of a key go on from bundle
// to bundle, and nothing is left.
func TestSink_SequenceGoesOnFromBundleToBundle(t *testing.T) {
	const keys, each = 10, 200
	srv := newServer(t)
	publishKeyed(t, srv, keys, 0, each)
	r := relayOf(srv, options.Limit{MaxMessages: keys * each})
	r.source.Subscriber.MaxRecordsPerBundle = 100
	r.sink = orderedSink(srv.Endpoint(), options.OrderByKey)
	r.sink.SequenceAttribute = "n"
	must(t, r.run(within(t, time.Minute)))
	expectSettled(t, srv, inSub)
	next := map[string]int{}
	for _, m := range srv.Messages(outTopic) {
		next[m.OrderingKey]++
		if want := strconv.Itoa(next[m.OrderingKey]); m.Attributes["n"] != want {
			t.Fatalf("%s has number %q, want %s", m.Data, m.Attributes["n"], want)
		}
	}
	expectOrder(t, srv.Messages(outTopic), keys, each, "")
}

// On the emulator, in both modes, which takes an ordering key as the service does.
func TestSink_KeepsTheOrderOnTheEmulator(t *testing.T) {
	long(t)
	const keys, each = 20, 100
	for _, by := range []options.OrderBy{options.OrderInPlace, options.OrderByKey} {
		t.Run(by.String(), func(t *testing.T) {
			endpoint := emulator.Start(t)
			client := emulator.Dial(t, endpoint)
			client.CreateTopic(outTopic)
			client.CreateSubscription(outSub, outTopic)
			p, s := beam.NewPipelineWithRoot()
			sink.Write(s, orderedSink(endpoint, by), encodeKeyedWord, beam.ParDo(s, &keyedWords{keys, each, 0}, beam.Impulse(s)))
			must(t, runPipeline(within(t, 2*time.Minute), p))
			var stored []*message.Message
			for _, m := range client.Drain(outSub) {
				stored = append(stored, &message.Message{Data: m.GetData(), OrderingKey: m.GetOrderingKey()})
			}
			expectOrder(t, stored, keys, each, "")
		})
	}
}

// The direct runner has no state: it would fail somewhere in the middle.
func TestSink_ByKeyIsRefusedOnTheDirectRunner(t *testing.T) {
	onRunner(t, "direct")
	srv := newServer(t)
	publishKeyed(t, srv, 1, 0, 10)
	r := relayOf(srv, options.Limit{MaxMessages: 10})
	r.sink = orderedSink(srv.Endpoint(), options.OrderByKey)
	expectError(t, r.run(within(t, 10*time.Second)), "direct", "options.OrderByKey", "--runner=prism")
	if n := srv.Calls("StreamingPull") + srv.Calls("Publish"); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// A keyed write that is slower than its source queued in the runner without a bound:
// what waits for it is bounded, all of it arrives, and all is acknowledged at the end.
func TestSink_ASlowKeyedWriteHoldsTheSourceBack(t *testing.T) {
	long(t)
	const n, keys = 60_000, 10
	srv := newServer(t, func(c *pubsubtest.Config) { c.Events, c.KeepPublished = 0, 0 })
	for from := 0; from < n; from += 1000 {
		messages := make([]*message.Message, 1000)
		for i := range messages {
			messages[i] = keyedWord(fmt.Sprintf("k%d %01000d", (from+i)%keys, (from+i)/keys))
		}
		_, err := srv.Publish(inTopic, messages...)
		must(t, err)
	}
	srv.Delay("Publish", 100*time.Millisecond)
	r := relayOf(srv, options.Limit{MaxMessages: n})
	r.source.Subscriber.BufferMaxMessages = 1000
	r.source.Subscriber.MaxRecordsPerBundle = 1000
	r.sink = orderedSink(srv.Endpoint(), options.OrderByKey)
	var most atomic.Int64
	passing := &probe{}
	passing.before = func(context.Context, *message.Message) error {
		// One bundle at a time passes.
		if waiting := passing.passed.Load() - srv.Published(outTopic); waiting > most.Load() {
			most.Store(waiting)
		}
		return nil
	}
	r.probe = passing
	r.source.Splits = 1
	must(t, r.run(within(t, 2*time.Minute)))
	s := srv.Stats(inSub)
	t.Logf("at most %d records waited for the write, %d messages were outstanding", most.Load(), s.MaxOutstanding)
	// The bound on what waits, and a bundle.
	if most.Load() > 25_000 {
		t.Errorf("%d records waited for the write", most.Load())
	}
	if s.MaxOutstanding > 12_000 {
		t.Errorf("%d messages were outstanding", s.MaxOutstanding)
	}
	if s.Acknowledged != n || s.Redelivered != 0 {
		t.Errorf("want %d acknowledged, none redelivered: %+v", n, s)
	}
	if got := srv.Published(outTopic); got != n {
		t.Errorf("%d were published of %d", got, n)
	}
	expectSettled(t, srv, inSub)
}

// In place, behind a read that has one bundle at a time, and in each a key's messages
// in order: many bundles, none of which overtakes another.
func TestSink_InPlaceBehindAReadInOrder(t *testing.T) {
	const keys, each = 20, 200
	srv := newServer(t)
	passingFailures(srv)
	publishKeyed(t, srv, keys, 0, each)
	r := relayOf(srv, options.Limit{MaxMessages: keys * each})
	r.source.Splits = 1
	r.source.Subscriber.MaxRecordsPerBundle = 50
	r.sink = orderedSink(srv.Endpoint(), options.OrderInPlace)
	must(t, r.run(within(t, time.Minute)))
	expectOrder(t, srv.Messages(outTopic), keys, each, "")
	expectSettled(t, srv, inSub)
}
