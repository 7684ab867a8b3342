package sink

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/window"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/window/trigger"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func init() {
	RegisterHandler(noteFailure)
	RegisterHandler(refuseFailure)
	RegisterHandler(panicAtFailure)
	dlq.Register[fakeQueue]()
	register.Function2x0(noteEmitted)
	register.Function3x0(noteEmittedInWindow)
}

// noted is where functions of the tests, which the workers find by name, put what
// they are given, by the name of the test.
var noted struct {
	sync.Mutex
	failed []Failed
	times  []int64
}

func notedAfresh(t *testing.T) {
	t.Helper()
	reset := func() {
		noted.Lock()
		defer noted.Unlock()
		noted.failed, noted.times = nil, nil
	}
	reset()
	t.Cleanup(reset)
}

func noteFailure(_ context.Context, f Failed) error {
	noted.Lock()
	defer noted.Unlock()
	noted.failed = append(noted.failed, f)
	return nil
}

func refuseFailure(context.Context, Failed) error { return errors.New("no place for it") }

func panicAtFailure(context.Context, Failed) error { panic("no place at all") }

func unregisteredHandler(context.Context, Failed) error { return errors.New("never called") }

func noteEmitted(at beam.EventTime, f Failed) {
	noted.Lock()
	defer noted.Unlock()
	noted.failed, noted.times = append(noted.failed, f), append(noted.times, int64(at))
}

func noteEmittedInWindow(w beam.Window, at beam.EventTime, f Failed) {
	if w.MaxTimestamp() == window.SingleGlobalWindow[0].MaxTimestamp() {
		noteEmitted(at, f)
	}
}

// writeTimed writes the words of wordsWithTimes, windowed by in.
func writeTimed(s beam.Scope, srv *pubsubtest.Server, p FailurePolicy, in func(beam.PCollection) beam.PCollection) Result {
	words := beam.ParDo(s, wordsWithTimes, beam.Impulse(s))
	return Write(s, Config{Topic: topic, EmulatorEndpoint: srv.Endpoint(), OnFailure: p}, encodeWord, in(words))
}

func asTheyAre(col beam.PCollection) beam.PCollection { return col }

// goodWords are those of wordsWithTimes that can be published.
func goodWords() []string {
	return slices.DeleteFunc(wordsAt(), func(w string) bool { return w == "fail" || w == "attribute" })
}

// checkBadWords checks the failures of wordsWithTimes.
func checkBadWords(t *testing.T, failed []Failed) {
	t.Helper()
	if len(failed) != 2 {
		t.Fatalf("%d failures: %+v", len(failed), failed)
	}
	slices.SortFunc(failed, func(a, b Failed) int { return a.EventTime.Compare(b.EventTime) })
	encode, rule := failed[0], failed[1]
	if word, err := RecordOf[string](encode); err != nil || word != "fail" {
		t.Errorf("the record is %q, error %v", word, err)
	}
	want := Failed{
		Record: encode.Record, Destination: topic, Time: encode.Time, EventTime: time.UnixMilli(5000).UTC(),
		Error: "encode a record for " + topic + ": encoder github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink.encodeWord: no such word",
	}
	if diff := cmp.Diff(want, encode); diff != "" {
		t.Errorf("of the encoder (-want +got):\n%s", diff)
	}
	const text = `the key of attribute "a\xc5z" is not valid UTF-8`
	want = Failed{
		Message:     &message.Message{Data: []byte("attribute"), Attributes: map[string]string{"a\xc5z": "v"}},
		Destination: topic, Time: rule.Time, EventTime: time.UnixMilli(10_000).UTC(), Rule: text,
		Error: "publish to " + topic + ": message refused before publishing: " + text,
	}
	if diff := cmp.Diff(want, rule); diff != "" {
		t.Errorf("of a rule (-want +got):\n%s", diff)
	}
	if age := time.Since(rule.Time); age < 0 || age > time.Minute {
		t.Errorf("it failed at %v", rule.Time)
	}
}

func TestWrite_EmitFailedGivesTheWholeRecordAtItsTime(t *testing.T) {
	for name, in := range map[string]func(beam.Scope) func(beam.PCollection) beam.PCollection{
		"global": func(beam.Scope) func(beam.PCollection) beam.PCollection { return asTheyAre },
		// The end of a bundle emits into the global window, where nothing of another
		// windowing can be.
		"fixed windows": func(s beam.Scope) func(beam.PCollection) beam.PCollection {
			return func(col beam.PCollection) beam.PCollection {
				return beam.WindowInto(s, window.NewFixedWindows(3*time.Second), col)
			}
		},
		"triggered windows, grouped": func(s beam.Scope) func(beam.PCollection) beam.PCollection {
			return func(col beam.PCollection) beam.PCollection {
				windowed := beam.WindowInto(s, window.NewFixedWindows(time.Minute), col, beam.Trigger(trigger.Always()), beam.PanesDiscard())
				return beam.Reshuffle(s, windowed)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			notedAfresh(t)
			srv := server(t)
			result, fn, err := onPrism(t.Context(), func(s beam.Scope) {
				beam.ParDo0(s, noteEmittedInWindow, writeTimed(s, srv, EmitFailed(), in(s)).Failed)
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(goodWords(), published(srv)); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
			slices.Sort(noted.times)
			if !slices.Equal(noted.times, []int64{5000, 10_000}) {
				t.Errorf("emitted at %v", noted.times)
			}
			checkBadWords(t, noted.failed)
			if got := stats.ForSink(fn.StatsNonce()).Failed.Load(); got != 2 || counter(result, "recordsFailed") != 2 {
				t.Errorf("%d failed, recordsFailed %d", got, counter(result, "recordsFailed"))
			}
		})
	}
}

// A consumer that windows the failures by their own times finds them there.
func TestWrite_EmitFailedCanBeWindowed(t *testing.T) {
	notedAfresh(t)
	srv := server(t)
	_, _, err := onPrism(t.Context(), func(s beam.Scope) {
		failed := writeTimed(s, srv, EmitFailed(), asTheyAre).Failed
		grouped := beam.Reshuffle(s, beam.WindowInto(s, window.NewFixedWindows(time.Second), failed))
		beam.ParDo0(s, noteEmitted, grouped)
	})
	if err != nil {
		t.Fatal(err)
	}
	checkBadWords(t, noted.failed)
}

func TestWrite_EmitFailedOnTheDirectRunner(t *testing.T) {
	notedAfresh(t)
	srv := server(t)
	_, err := onDirect(t.Context(), func(s beam.Scope) {
		beam.ParDo0(s, noteEmitted, writeTimed(s, srv, EmitFailed(), asTheyAre).Failed)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(goodWords(), published(srv)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	checkBadWords(t, noted.failed)
}

// Failed is there under each policy, and a pipeline may use it whatever is set.
func TestWrite_FailedIsEmptyUnderAnotherPolicy(t *testing.T) {
	notedAfresh(t)
	srv := server(t)
	_, _, err := onPrism(t.Context(), func(s beam.Scope) {
		beam.ParDo0(s, noteEmitted, writeTimed(s, srv, LogAndDrop(), asTheyAre).Failed)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(goodWords(), published(srv)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if len(noted.failed) > 0 {
		t.Errorf("emitted %+v", noted.failed)
	}
}

func TestWrite_HandleWith(t *testing.T) {
	for name, c := range map[string]struct {
		handle FailureHandler
		want   string // in the error; none for success
	}{
		"disposes":  {noteFailure, ""},
		"refuses":   {refuseFailure, "failure handler github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink.refuseFailure: no place for it; the failure: encode a record for " + topic},
		"panics at": {panicAtFailure, "sink.panicAtFailure panicked at policy_test.go:"},
	} {
		t.Run(name, func(t *testing.T) {
			notedAfresh(t)
			srv := server(t)
			_, fn, err := onPrism(t.Context(), func(s beam.Scope) { writeTimed(s, srv, HandleWith(c.handle), asTheyAre) })
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				checkBadWords(t, noted.failed)
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the job ended with %v, want %s", err, c.want)
			}
			if got := inFlight(t, fn); got != 0 {
				t.Errorf("%d messages left in the pool", got)
			}
		})
	}
}

// An outage, a missing permission and an ordering key are no bad records.
func TestWrite_WhatIsNoBadRecordNeverReachesAPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		word   string
		answer error
		want   string
	}{
		"permission":   {"a", status.Error(codes.PermissionDenied, "no"), "PermissionDenied"},
		"missing":      {"a", status.Error(codes.NotFound, "no"), "NotFound"},
		"outage":       {"a", status.Error(codes.Unavailable, "no"), "options.Publisher.RetryMaxAttempts (2) is used up"},
		"ordering key": {"keyed", nil, "options.Publisher.EnableMessageOrdering"},
	} {
		t.Run(name, func(t *testing.T) {
			notedAfresh(t)
			srv := server(t)
			if c.answer != nil {
				srv.Answer("Publish", c.answer)
			}
			_, _, err := onPrism(t.Context(), func(s beam.Scope) {
				Write(s, Config{
					Topic: topic, EmulatorEndpoint: srv.Endpoint(), OnFailure: HandleWith(noteFailure), CreateDisposition: options.CreateNever,
					Publisher: options.Publisher{RetryMaxAttempts: 2, RetryInitialDelay: options.Disabled},
				}, encodeWord, beam.Create(s, c.word))
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the job ended with %v, want %s", err, c.want)
			}
			if len(noted.failed) > 0 {
				t.Errorf("the policy was given %+v", noted.failed)
			}
		})
	}
}

// What the service rejects tells its status.
func TestRejected_TellsTheStatus(t *testing.T) {
	m := &message.Message{Data: []byte("x")}
	err := status.Error(codes.InvalidArgument, "it does not fit the schema")
	f := rejected(publish.Rejection{Topic: topic, Message: m, Tag: 7, Err: err, Attempts: 3})
	want := Failed{
		Message: m, Destination: topic, Code: codes.InvalidArgument, Status: "it does not fit the schema",
		Error: err.Error(), Attempts: 3, Time: f.Time, EventTime: time.UnixMilli(7).UTC(),
	}
	if diff := cmp.Diff(want, f.Failed); diff != "" || f.at != 7 {
		t.Errorf("at %d (-want +got):\n%s", f.at, diff)
	}
}

func TestRegisterHandler_PanicsWithAClosure(t *testing.T) {
	defer func() {
		if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "sink.RegisterHandler: ") {
			t.Errorf("panicked with %v", text)
		}
	}()
	RegisterHandler(func(context.Context, Failed) error { return nil })
}

func TestSetup_NamesThePolicysPartThatIsMissingOnTheWorker(t *testing.T) {
	for want, p := range map[string]policy{
		"call sink.RegisterHandler with it in init, not in main": {Kind: handleWith, Handler: "main.handle"},
		"call dlq.Register with it in init, not in main":         {Kind: sendTo, Queue: dlq.Encoded{Type: "main.queue"}},
	} {
		fn := &writeFn{preparation: preparation{Topic: topic, Encoder: keyOf(t, String)}, publication: publication{Failure: p}}
		if err := fn.Setup(); err == nil || !strings.HasPrefix(err.Error(), "sink: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("Setup: %v, want %s", err, want)
		}
	}
}

func TestFailurePolicy_String(t *testing.T) {
	for want, p := range map[string]FailurePolicy{
		"sink.Fail()": {}, "sink.LogAndDrop()": LogAndDrop(), "sink.EmitFailed()": EmitFailed(),
		"sink.SendTo(sink.fakeQueue)": SendTo(fakeQueue{}),
		"sink.HandleWith(github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink.noteFailure)": HandleWith(noteFailure),
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if Fail().String() != "sink.Fail()" {
		t.Error("Fail is not the zero value")
	}
}

func init() { RegisterEncoder(encodeBad) }

// encodeBad makes a message that the service would refuse of the words that say so.
func encodeBad(word string) (*message.Message, error) {
	m := &message.Message{Data: []byte(word)}
	switch word {
	case "long value":
		m.Attributes = map[string]string{"comment": strings.Repeat("x", 1025)}
	case "not UTF-8":
		m.Attributes = map[string]string{"a\xc5z": "v"}
	case "empty":
		m.Data = nil
	}
	return m, nil
}

// One message that the service refuses stopped the whole pipeline, or all that was in
// its request, and was retried for ever.
func TestWrite_ABadMessageAmongGoodOnesGoesToThePolicy_C29_C30(t *testing.T) {
	for word, rule := range map[string]string{
		"long value": `the value of attribute "comment" has 1025 bytes, the limit is 1024`,
		"not UTF-8":  `the key of attribute "a\xc5z" is not valid UTF-8`,
		"empty":      "it is empty: it needs data or at least one attribute",
	} {
		t.Run(word, func(t *testing.T) {
			notedAfresh(t)
			srv := server(t)
			_, _, err := onPrism(t.Context(), func(s beam.Scope) {
				Write(s, Config{Topic: topic, EmulatorEndpoint: srv.Endpoint(), OnFailure: HandleWith(noteFailure)}, encodeBad,
					beam.CreateList(s, slices.Insert(numbered(99), 50, word)))
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(numbered(99), published(srv)); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
			events := srv.Events()
			// From the first, not from the start of a pipeline on a busy machine.
			if took := events[98].Time.Sub(events[0].Time); took > time.Second {
				t.Errorf("the last was published %v after the first", took)
			}
			want, _ := encodeBad(word)
			if len(noted.failed) != 1 || noted.failed[0].Rule != rule || !cmp.Equal(noted.failed[0].Message, want, cmpopts.EquateEmpty()) {
				t.Errorf("the policy was given %+v, want the rule %q", noted.failed, rule)
			}
		})
	}
}

// Failures of a bundle that fails were worked on, and came again with the retry.
func TestWriteFn_ABundleThatFailsEmitsNothing(t *testing.T) {
	srv := server(t)
	srv.Answer("Publish", status.Error(codes.PermissionDenied, "no"))
	pool := publish.Config{Nonce: t.Name()}
	pool.Connection.EmulatorEndpoint = srv.Endpoint()
	fn := &writeFn{preparation: preparation{Topic: topic, Encoder: keyOf(t, encodeWord)}, publication: publication{Pool: pool, Failure: policy{Kind: emitFailed}}}
	if err := fn.Setup(); err != nil {
		t.Fatal(err)
	}
	emit := func(beam.EventTime, Failed) { t.Error("a failure was emitted") }
	if err := fn.StartBundle(t.Context(), emit); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"fail", "a"} {
		if err := fn.ProcessElement(t.Context(), 0, word, emit); err != nil {
			t.Fatal(err)
		}
	}
	if err := fn.FinishBundle(t.Context(), emit); err == nil {
		t.Error("the bundle succeeded")
	}
	if err := fn.Teardown(); err != nil {
		t.Error(err)
	}
}
