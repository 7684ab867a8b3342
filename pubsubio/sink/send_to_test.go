package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
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

// A fakeQueue notes what is asked of it in queueLogs, under its name, and fails, or
// panics in, the call that FailAt names.
type fakeQueue struct{ Name, FailAt string }

type queueLog struct {
	sync.Mutex
	calls   []string
	durable []dlq.Letter
	srv     *pubsubtest.Server // whose published messages are counted at the flush
}

var queueLogs sync.Map // of *queueLog, by name

func (q fakeQueue) log() *queueLog {
	l, _ := queueLogs.LoadOrStore(q.Name, new(queueLog))
	return l.(*queueLog)
}

func (q fakeQueue) note(call string) error {
	l := q.log()
	l.Lock()
	defer l.Unlock()
	l.calls = append(l.calls, call)
	switch q.FailAt {
	case call:
		return errors.New("the queue is out of order")
	case "panic in " + call:
		panic("the queue is broken")
	}
	return nil
}

func (q fakeQueue) Validate() error {
	if q.Name == "invalid" {
		return errors.New("fakeQueue.Name: must be valid")
	}
	return nil
}

func (q fakeQueue) Open(_ context.Context, owner string) (dlq.Writer, error) {
	if owner == "" {
		return nil, errors.New("nobody opens it")
	}
	if err := q.note("open"); err != nil {
		return nil, err
	}
	return &fakeWriter{queue: q}, nil
}

func (q fakeQueue) Close(string) error { return q.note("close") }

type fakeWriter struct {
	queue   fakeQueue
	letters []dlq.Letter
}

func (w *fakeWriter) Offer(_ context.Context, l dlq.Letter) error {
	w.letters = append(w.letters, l)
	return w.queue.note("offer")
}

func (w *fakeWriter) Flush(context.Context) error {
	call := "flush"
	if l := w.queue.log(); l.srv != nil {
		call = fmt.Sprintf("flush after %d", len(l.srv.Messages(topic)))
	}
	if err := w.queue.note(call); err != nil {
		return err
	}
	l := w.queue.log()
	l.Lock()
	defer l.Unlock()
	l.durable = append(l.durable, w.letters...)
	return nil
}

func (w *fakeWriter) Drop() { _ = w.queue.note("drop") }

type unregisteredQueue struct{ fakeQueue }

// queueFor returns a queue of its own for the test, and its log.
func queueFor(t *testing.T, srv *pubsubtest.Server, failAt string) (fakeQueue, *queueLog) {
	t.Helper()
	q := fakeQueue{Name: t.Name(), FailAt: failAt}
	q.log().srv = srv
	t.Cleanup(func() { queueLogs.Delete(q.Name) })
	return q, q.log()
}

func TestWrite_SendToHandsWholeLettersToTheQueue(t *testing.T) {
	srv := server(t)
	q, log := queueFor(t, nil, "")
	result, fn, err := onPrism(t.Context(), func(s beam.Scope) { writeTimed(s, srv, SendTo(q), asTheyAre) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(goodWords(), published(srv)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"open", "offer", "offer", "flush", "close"}, log.calls); diff != "" {
		t.Errorf("asked of the queue (-want +got):\n%s", diff)
	}
	record, err := encodeRecord("fail")
	if err != nil {
		t.Fatal(err)
	}
	want := []dlq.Letter{{
		Connector: "pubsubio.sink", Destination: topic, Record: record, EventTime: time.UnixMilli(5000).UTC(),
		Error: "encode a record for " + topic + ": encoder github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink.encodeWord: no such word",
	}, {
		Connector: "pubsubio.sink", Destination: topic, EventTime: time.UnixMilli(10_000).UTC(),
		Message: &message.Message{Data: []byte("attribute"), Attributes: map[string]string{"a\xc5z": "v"}},
		Error:   "publish to " + topic + `: message refused before publishing: the key of attribute "a\xc5z" is not valid UTF-8`,
	}}
	if diff := cmp.Diff(want, log.durable, cmpopts.IgnoreFields(dlq.Letter{}, "Time")); diff != "" {
		t.Errorf("letters (-want +got):\n%s", diff)
	}
	if got := stats.ForSink(fn.StatsNonce()).DeadLetters.Load(); got != 2 || counter(result, "deadLetters") != 2 {
		t.Errorf("%d dead letters, deadLetters %d", got, counter(result, "deadLetters"))
	}
}

// sending returns a DoFn that sends to the queue, and batches until the bundle ends.
func sending(t *testing.T, srv *pubsubtest.Server, q fakeQueue) *writeFn {
	t.Helper()
	p, err := SendTo(q).travel()
	if err != nil {
		t.Fatal(err)
	}
	pool := publish.Config{Nonce: t.Name(), Publisher: options.Publisher{BatchDelay: time.Minute}}
	pool.Connection.EmulatorEndpoint = srv.Endpoint()
	fn := &writeFn{preparation: preparation{Topic: topic, Encoder: keyOf(t, encodeWord)}, publication: publication{Pool: pool, Failure: p}}
	if err := fn.Setup(); err != nil {
		t.Fatal(err)
	}
	if err := fn.StartBundle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fn.Teardown(); err != nil {
			t.Error(err)
		}
	})
	return fn
}

// A bundle that committed while its letters were on their way would lose them, and
// letters that are flushed before the bundle's own messages come for nothing when one
// of these fails.
func TestWriteFn_FlushesTheQueueAfterItsOwnMessages(t *testing.T) {
	srv := server(t)
	q, log := queueFor(t, srv, "")
	fn := sending(t, srv, q)
	process(t, fn, "a", "fail", "b")
	if err := fn.FinishBundle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"open", "offer", "flush after 2"}; !slices.Equal(log.calls, want) {
		t.Errorf("asked of the queue: %v, want %v", log.calls, want)
	}
}

func TestWriteFn_ABundleWithoutFailuresOpensNoQueue(t *testing.T) {
	srv := server(t)
	q, log := queueFor(t, srv, "")
	fn := sending(t, srv, q)
	process(t, fn, "a", "b")
	if err := fn.FinishBundle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if len(log.calls) > 0 {
		t.Errorf("asked of the queue: %v", log.calls)
	}
}

func TestWriteFn_AFailingQueueFailsTheBundle(t *testing.T) {
	for failAt, c := range map[string]struct {
		want  string
		calls []string
	}{
		"open":          {"sink: open the dead-letter queue: the queue is out of order", []string{"open"}},
		"offer":         {"sink: hand a failed record to the dead-letter queue: the queue is out of order", []string{"open", "offer", "drop"}},
		"flush after 1": {"sink: flush the dead-letter queue: the queue is out of order", []string{"open", "offer", "flush after 1", "drop"}},
	} {
		t.Run(failAt, func(t *testing.T) {
			srv := server(t)
			q, log := queueFor(t, srv, failAt)
			fn := sending(t, srv, q)
			process(t, fn, "a")
			err := fn.ProcessElement(t.Context(), 0, "fail", nil)
			if err == nil {
				err = fn.FinishBundle(t.Context(), nil)
			}
			if err == nil || err.Error() != c.want {
				t.Errorf("the bundle ended with %v, want %s", err, c.want)
			}
			fn.drop() // the hook's part
			if !slices.Equal(log.calls, c.calls) || len(log.durable) > 0 {
				t.Errorf("asked of the queue: %v, want %v", log.calls, c.calls)
			}
		})
	}
}

func TestWrite_AFailedBundleDropsItsLetters(t *testing.T) {
	srv := server(t)
	q, log := queueFor(t, srv, "")
	_, _, err := onPrism(t.Context(), func(s beam.Scope) {
		words := beam.ParDo(s, failAtLast, beam.CreateList(s, []string{"fail", "b", "last"}))
		Write(s, Config{Topic: topic, EmulatorEndpoint: srv.Endpoint(), OnFailure: SendTo(q)}, encodeWord, words)
	})
	if err == nil || !strings.Contains(err.Error(), "the producer failed") {
		t.Fatalf("the job ended with %v", err)
	}
	if want := []string{"open", "offer", "drop", "close"}; !slices.Equal(log.calls, want) {
		t.Errorf("asked of the queue: %v, want %v", log.calls, want)
	}
}

// The bundle's own messages fail first, so its letters are not flushed.
func TestWriteFn_ARefusedPublishDropsTheLetters(t *testing.T) {
	srv := server(t)
	srv.Answer("Publish", status.Error(codes.PermissionDenied, "no"))
	q, log := queueFor(t, srv, "")
	fn := sending(t, srv, q)
	process(t, fn, "a", "fail")
	if err := fn.FinishBundle(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "PermissionDenied") {
		t.Errorf("the bundle ended with %v", err)
	}
	if want := []string{"open", "offer", "drop"}; !slices.Equal(log.calls, want) {
		t.Errorf("asked of the queue: %v, want %v", log.calls, want)
	}
}

// A panic of a queue ended the worker, and with it every other bundle.
func TestWrite_APanicOfTheQueueFailsTheBundle(t *testing.T) {
	for _, call := range []string{"open", "offer", "flush"} {
		t.Run(call, func(t *testing.T) {
			srv := server(t)
			q, _ := queueFor(t, nil, "panic in "+call)
			_, _, err := onPrism(t.Context(), func(s beam.Scope) { writeTimed(s, srv, SendTo(q), asTheyAre) })
			if err == nil || !strings.Contains(err.Error(), "dead-letter queue sink.fakeQueue panicked at send_to_test.go:") {
				t.Errorf("the job ended with %v", err)
			}
		})
	}
}

const deadTopic = "projects/p/topics/dead"

// lookups is how often a server was asked about topics.
func lookups(srv *pubsubtest.Server) int64 {
	return srv.Calls("GetTopic") + srv.Calls("ListTopicSubscriptions") + srv.Calls("ListTopics") + srv.Calls("CreateTopic")
}

// deadLettering returns a DoFn as a worker makes it, whose failures go to a topic of
// the server.
func deadLettering(t *testing.T, srv *pubsubtest.Server) *writeFn {
	t.Helper()
	p, err := SendTo(dlq.Config{Topic: deadTopic, EmulatorEndpoint: srv.Endpoint()}).travel()
	if err != nil {
		t.Fatal(err)
	}
	pool := publish.Config{Nonce: t.Name(), Disposition: options.CreateNever}
	pool.Connection.EmulatorEndpoint = srv.Endpoint()
	fn := &writeFn{preparation: preparation{Topic: topic, Encoder: keyOf(t, encodeWord)}, publication: publication{Pool: pool, Failure: p}}
	if err := fn.Setup(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fn.Teardown(); err != nil {
			t.Error(err)
		}
	})
	return fn
}

// A check for each bundle would burn the quota of such calls; once in a process is
// enough, however many instances and bundles there are.
func TestWriteFn_ChecksTheQueueOnceInAProcess(t *testing.T) {
	srv := server(t)
	srv.MustCreateTopic(deadTopic)
	for range 2 {
		fn := deadLettering(t, srv)
		for range 3 {
			if err := fn.StartBundle(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			process(t, fn, "a", "fail")
			if err := fn.FinishBundle(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := lookups(srv); n != 2 {
		t.Errorf("%d calls about topics, want one for the topic and one for its subscriptions", n)
	}
	if n := srv.Published(deadTopic); n != 6 {
		t.Errorf("%d letters are stored", n)
	}
}

func TestWriteFn_WithoutAQueueNothingIsAsked(t *testing.T) {
	srv := server(t)
	pool := publish.Config{Nonce: t.Name()}
	pool.Connection.EmulatorEndpoint = srv.Endpoint()
	fn := instance(t, pool)
	process(t, fn, "a", "b")
	if err := fn.FinishBundle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := fn.Teardown(); err != nil {
		t.Error(err)
	}
	if n := lookups(srv); n != 0 {
		t.Errorf("%d calls about topics", n)
	}
}

// It was found out when the first record failed, perhaps weeks later.
func TestWriteFn_AMissingDeadLetterTopicFailsTheFirstBundle(t *testing.T) {
	srv := server(t)
	fn := deadLettering(t, srv)
	err := fn.StartBundle(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "sink: check the dead-letter queue: dlq: dead-letter topic "+deadTopic+" does not exist") || !strings.Contains(err.Error(), "gcloud pubsub topics create dead --project=p") {
		t.Errorf("the bundle started with %v", err)
	}
	srv.MustCreateTopic(deadTopic) // The runner tries again.
	if err := fn.StartBundle(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
