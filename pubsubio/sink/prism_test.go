package sink

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/google/go-cmp/cmp"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func init() {
	RegisterEncoder(encodeWord)
	register.Function2x0(makeMessages)
	register.Emitter1[*message.Message]()
	register.Function1x1(failAtLast)
}

// encodeWord skips "skip", fails at "fail", panics at "panic", gives "keyed" an
// ordering key, "attribute" a bad attribute and "empty" nothing.
func encodeWord(s string) (*message.Message, error) {
	m := &message.Message{Data: []byte(s)}
	switch s {
	case "skip":
		return nil, nil
	case "fail":
		return nil, errors.New("no such word")
	case "panic":
		panic("no word at all")
	case "keyed":
		m.OrderingKey = "k"
	case "attribute":
		m.Attributes = map[string]string{"a\xc5z": "v"}
	case "empty":
		return &message.Message{}, nil
	}
	return m, nil
}

// failAtLast panics at the word "last", when the ones before it are in the sink.
func failAtLast(s string) string {
	if s == "last" {
		panic("the producer failed")
	}
	return s
}

func server(t *testing.T) *pubsubtest.Server {
	t.Helper()
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topic)
	return srv
}

func published(srv *pubsubtest.Server) []string {
	var out []string
	for _, m := range srv.Messages(topic) {
		out = append(out, string(m.Data))
	}
	slices.Sort(out)
	return out
}

func write(s beam.Scope, endpoint string, o options.Publisher, words ...string) {
	Write(s, Config{Topic: topic, EmulatorEndpoint: endpoint, Publisher: o}, encodeWord, beam.CreateList(s, words))
}

func TestWrite_PublishesEveryRecordOnPrism(t *testing.T) {
	for _, n := range []int{1, 2500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			srv := server(t)
			result, fn, err := onPrism(t.Context(), func(s beam.Scope) { write(s, srv.Endpoint(), options.Publisher{}, numbered(n)...) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(numbered(n), published(srv)); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
			if got := stats.ForSink(fn.StatsNonce()).Published.Load(); got != int64(n) {
				t.Errorf("%d published by the counters of the run", got)
			}
			if got := counter(result, "recordsSend"); got != int64(n) {
				t.Errorf("recordsSend = %d", got)
			}
			if got := counter(result, "bytesSend"); got != int64(n*9) {
				t.Errorf("bytesSend = %d", got)
			}
		})
	}
}

func TestWrite_MakesNoCallWhenNothingIsToBePublished(t *testing.T) {
	srv := server(t)
	_, _, err := onPrism(t.Context(), func(s beam.Scope) { write(s, srv.Endpoint(), options.Publisher{}, "skip") })
	if err != nil {
		t.Fatal(err)
	}
	if n := srv.Calls("Publish"); n != 0 {
		t.Errorf("%d publish calls", n)
	}
}

func TestWrite_PublishesEveryRecordToTheEmulator(t *testing.T) {
	endpoint := emulator.Start(t)
	client := emulator.Dial(t, endpoint)
	const subscription = "projects/p/subscriptions/out"
	client.CreateTopic(topic)
	client.CreateSubscription(subscription, topic)
	if _, _, err := onPrism(t.Context(), func(s beam.Scope) { write(s, endpoint, options.Publisher{}, numbered(1500)...) }); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range client.Drain(subscription) {
		got = append(got, string(m.GetData()))
	}
	slices.Sort(got)
	if diff := cmp.Diff(numbered(1500), got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

func TestWrite_PublishesEveryRecordOnTheDirectRunner(t *testing.T) {
	srv := server(t)
	fn, err := onDirect(t.Context(), func(s beam.Scope) { write(s, srv.Endpoint(), options.Publisher{}, numbered(250)...) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(numbered(250), published(srv)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if got := inFlight(t, fn); got != 0 {
		t.Errorf("%d messages left in the pool", got)
	}
}

// makeMessages emits messages at the edges of what the service takes.
func makeMessages(_ []byte, emit func(*message.Message)) {
	for _, m := range edgeMessages() {
		emit(m)
	}
}

func edgeMessages() []*message.Message {
	hundred := make(map[string]string, 100)
	for i := range 100 {
		hundred[fmt.Sprintf("key%d", i)] = strings.Repeat("v", i)
	}
	// Topic: 2 + 21 bytes. Framing of a message of 10 MB: 5, of its data: 5.
	largest := options.MaxRequestBytes - len(topic) - 2 - 5 - 5
	return []*message.Message{
		{Attributes: map[string]string{"k": "v"}},
		{Data: []byte("x"), Attributes: hundred},
		{Data: []byte{0xff, 0x00, 0xc5}},
		{Data: bytes.Repeat([]byte{7}, 8_000_000)}, // C36
		{Data: bytes.Repeat([]byte{7}, largest)},
	}
}

func TestWrite_TakesWhatTheServiceTakes(t *testing.T) {
	srv := server(t)
	_, _, err := onPrism(t.Context(), func(s beam.Scope) {
		messages := beam.ParDo(s, makeMessages, beam.Impulse(s))
		Write(s, Config{Topic: topic, EmulatorEndpoint: srv.Endpoint()}, Message, messages)
	})
	if err != nil {
		t.Fatal(err)
	}
	got := srv.Messages(topic)
	if len(got) != len(edgeMessages()) {
		t.Fatalf("%d published", len(got))
	}
	for _, want := range edgeMessages() {
		if !slices.ContainsFunc(got, func(m *message.Message) bool {
			return bytes.Equal(m.Data, want.Data) && len(m.Attributes) == len(want.Attributes)
		}) {
			t.Errorf("a message of %d bytes and %d attributes is missing", len(want.Data), len(want.Attributes))
		}
	}
}

// One bad record stopped its neighbours, for ever.
func TestWrite_PublishesTheNeighboursOfABadRecord_C30(t *testing.T) {
	for bad, want := range map[string]string{
		"empty":     "it is empty: it needs data or at least one attribute",
		"attribute": `the key of attribute "a\xc5z" is not valid UTF-8`,
	} {
		t.Run(bad, func(t *testing.T) {
			srv := server(t)
			_, fn, err := onPrism(t.Context(), func(s beam.Scope) {
				write(s, srv.Endpoint(), options.Publisher{}, slices.Insert(numbered(99), 50, bad)...)
			})
			want = "sink: 1 of the bundle's records failed, the others were published; the first: publish to " + topic + ": message refused before publishing: " + want
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the job ended with %v, want %q", err, want)
			}
			if diff := cmp.Diff(numbered(99), published(srv)); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
			events := srv.Events()
			// From the first, not from the start of a pipeline on a busy machine.
			if took := events[98].Time.Sub(events[0].Time); took > time.Second {
				t.Errorf("the last was published %v after the first", took)
			}
			if got := stats.ForSink(fn.StatsNonce()); got.Failed.Load() != 1 || got.Published.Load() != 99 {
				t.Errorf("%d failed, %d published by the counters of the run", got.Failed.Load(), got.Published.Load())
			}
		})
	}
}

func TestWrite_CountsWhatTheEncoderSkips(t *testing.T) {
	srv := server(t)
	result, fn, err := onPrism(t.Context(), func(s beam.Scope) { write(s, srv.Endpoint(), options.Publisher{}, "a", "skip", "b", "skip") })
	if err != nil {
		t.Fatal(err)
	}
	if got := published(srv); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("published %v", got)
	}
	if got := stats.ForSink(fn.StatsNonce()).Skipped.Load(); got != 2 {
		t.Errorf("%d skipped by the counters of the run", got)
	}
	if got := counter(result, "recordsSkipped"); got != 2 {
		t.Errorf("recordsSkipped = %d", got)
	}
}

// counter returns the committed value of a counter of the sink.
func counter(r beam.PipelineResult, name string) int64 {
	var sum int64
	for _, c := range r.Metrics().Query(func(m beam.MetricResult) bool {
		return m.Namespace() == namespace && m.Name() == name
	}).Counters() {
		sum += c.Result()
	}
	return sum
}
