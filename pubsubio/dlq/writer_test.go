package dlq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// fixture is a server with a dead-letter topic, and a queue to it that the end of the
// test closes. The owner is ownerOf(t).
func fixture(t *testing.T, adjust ...func(*Config)) (*pubsubtest.Server, Config) {
	t.Helper()
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(testTopic)
	srv.MustCreateSubscription(testSub, testTopic)
	cfg := Config{Topic: testTopic, EmulatorEndpoint: srv.Endpoint()}
	for _, f := range adjust {
		f(&cfg)
	}
	t.Cleanup(func() {
		if err := cfg.Close(ownerOf(t)); err != nil {
			t.Error(err)
		}
	})
	return srv, cfg
}

func opened(t *testing.T, cfg Config) Writer {
	t.Helper()
	w, err := cfg.Open(t.Context(), ownerOf(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Drop)
	return w
}

// numbered is a letter with that number.
func numbered(i int) Letter {
	return Letter{Connector: "test", Destination: elsewhere, Message: &message.Message{Data: fmt.Append(nil, i)}, Error: "why"}
}

func offer(t *testing.T, w Writer, letters ...Letter) {
	t.Helper()
	for _, l := range letters {
		if err := w.Offer(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
}

// stored counts the letters that the server has, by their data.
func stored(srv *pubsubtest.Server) map[string]int {
	counts := make(map[string]int)
	for _, m := range srv.Messages(testTopic) {
		counts[string(Decode(m).Message.Data)]++
	}
	return counts
}

func TestWriter_FlushReturnsOnceAllIsStored(t *testing.T) {
	srv, cfg := fixture(t)
	srv.Delay("Publish", 20*time.Millisecond)
	w := opened(t, cfg)
	for i := range 250 {
		offer(t, w, numbered(i))
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Drop() // does nothing after a flush
	if n := len(stored(srv)); n != 250 {
		t.Errorf("%d of 250 letters are stored", n)
	}
	s := stats.ForQueue(ownerOf(t))
	if _, _, longest := s.Flushes.Load(); s.Published.Load() != 250 || s.Outstanding() != 0 || longest <= 0 {
		t.Errorf("counted %d, outstanding %d, longest %v", s.Published.Load(), s.Outstanding(), longest)
	}
	if n := srv.Calls("Publish"); n > 250/2 {
		t.Errorf("%d requests: letters are not batched", n)
	}
}

// The narrowest window for a loss: what Offer has taken, the service has.
func TestWriter_WriteThroughStoresEachLetterBeforeOfferReturns(t *testing.T) {
	srv, cfg := fixture(t, func(c *Config) { c.MaxInFlightMessages = WriteThrough })
	w := opened(t, cfg)
	for i := range 20 {
		offer(t, w, numbered(i))
		if n := srv.Published(testTopic); n != int64(i+1) {
			t.Fatalf("after %d letters, %d are stored", i+1, n)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if got := stats.ForQueue(ownerOf(t)).Published.Load(); got != 20 {
		t.Errorf("counted %d", got)
	}
}

func TestWriter_WriteThroughFailsAtTheLetterThatIsNotStored(t *testing.T) {
	srv, cfg := fixture(t, func(c *Config) { c.MaxInFlightMessages = WriteThrough })
	offer(t, opened(t, cfg), numbered(0))
	srv.Answer("Publish", status.Error(codes.Unavailable, "down"))
	cfg.FlushTimeout = 500 * time.Millisecond
	w := opened(t, cfg)
	err := w.Offer(t.Context(), numbered(1))
	expectError(t, err, "dlq: publish to "+testTopic, "dlq.Config.FlushTimeout (500ms) is over")
	if flushed := w.Flush(t.Context()); !errors.Is(flushed, err) {
		t.Errorf("Flush returned %v", flushed)
	}
	if n := srv.Published(testTopic); n != 1 {
		t.Errorf("%d are stored", n)
	}
}

// expectError checks that err is one with all of the texts.
func expectError(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, without %q", err, want)
			return
		}
	}
}

// The dead-letter topic is down: the bundle fails, and its next run sends everything.
func TestWriter_AnOutageFailsTheBundleAndDropsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		begin, end func(srv *pubsubtest.Server)
	}{
		"refused": {
			func(srv *pubsubtest.Server) { srv.Answer("Publish", status.Error(codes.Unavailable, "down")) },
			func(srv *pubsubtest.Server) { srv.Answer("Publish", nil) },
		},
		"quota": {
			func(srv *pubsubtest.Server) { srv.Answer("Publish", status.Error(codes.ResourceExhausted, "quota")) },
			func(srv *pubsubtest.Server) { srv.Answer("Publish", nil) },
		},
		"unreachable": {
			(*pubsubtest.Server).Stop,
			func(srv *pubsubtest.Server) { _ = srv.Resume() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, cfg := fixture(t, func(c *Config) { c.FlushTimeout = time.Second })
			w := opened(t, cfg)
			c.begin(srv)
			offer(t, w, numbered(0), numbered(1))
			expectError(t, w.Flush(t.Context()), "dlq: publish to "+testTopic+": gave up waiting for answers: dlq.Config.FlushTimeout (1s) is over; the last attempt, for "+testTopic)
			w.Drop()
			if n := stats.ForQueue(ownerOf(t)).Published.Load(); n != 0 {
				t.Errorf("%d letters count as published", n)
			}
			c.end(srv)
			// A connection that was lost comes back within seconds.
			cfg.FlushTimeout = 30 * time.Second
			again := opened(t, cfg)
			offer(t, again, numbered(0), numbered(1))
			if err := again.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := stored(srv); got["0"] == 0 || got["1"] == 0 {
				t.Errorf("stored %v", got)
			}
		})
	}
}

// One deadline holds for all letters of a flush: a deadline for each would add up.
func TestWriter_OneDeadlineForAllThatIsInFlight(t *testing.T) {
	srv, cfg := fixture(t, func(c *Config) { c.FlushTimeout = 500 * time.Millisecond })
	srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.NeverAnswer())
	w := opened(t, cfg)
	for i := range 300 {
		offer(t, w, numbered(i))
	}
	began := time.Now()
	expectError(t, w.Flush(t.Context()), "dlq.Config.FlushTimeout (500ms) is over")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the flush took %v", took)
	}
}

// deadlines is a service that notes how long each attempt may take, and answers the
// first as one that is overloaded.
type deadlines struct {
	pubsubpb.UnimplementedPublisherServer

	attempts chan time.Duration
}

func (d *deadlines) Publish(ctx context.Context, r *pubsubpb.PublishRequest) (*pubsubpb.PublishResponse, error) {
	end, _ := ctx.Deadline()
	first := len(d.attempts) == 0
	d.attempts <- time.Until(end)
	if first {
		return nil, status.Error(codes.Unavailable, "overloaded")
	}
	return &pubsubpb.PublishResponse{MessageIds: make([]string, len(r.Messages))}, nil
}

// An attempt had a quarter of FlushTimeout, the next one half: an answer that takes
// longer never came within one wait, and each attempt that was cut may have been stored.
// The first leaves room for another, where its answer is lost.
func TestWriter_AnAttemptMayTakeMostOfFlushTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &deadlines{attempts: make(chan time.Duration, 10)}
	srv := grpc.NewServer()
	pubsubpb.RegisterPublisherServer(srv, d)
	go func() { _ = srv.Serve(l) }() // Ends with Stop.
	t.Cleanup(srv.Stop)
	cfg := Config{Topic: testTopic, EmulatorEndpoint: l.Addr().String(), FlushTimeout: time.Hour}
	w := opened(t, cfg)
	offer(t, w, numbered(0))
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Close(ownerOf(t)); err != nil {
		t.Error(err)
	}
	if first, second := <-d.attempts, <-d.attempts; first < 39*time.Minute || first > 41*time.Minute || second < 39*time.Minute {
		t.Errorf("of an hour, the attempts have %v and %v", first, second)
	}
}

// A slow topic is given the whole of FlushTimeout: what progresses is no stall, and
// what does not end in time is no success.
func TestWriter_FlushTimeoutHoldsAlsoWhereOthersAreAnswered(t *testing.T) {
	srv, cfg := fixture(t, func(c *Config) { c.FlushTimeout = 500 * time.Millisecond })
	held := func(m *message.Message) bool { return string(Decode(m).Message.Data) == "held" }
	order := srv.Order(pubsubtest.Rule{Method: "Publish", Message: held}, pubsubtest.NeverAnswer())
	slow := opened(t, cfg)
	cfg.FlushTimeout = 0 // the default, in the same pool
	quick := opened(t, cfg)
	l := numbered(0)
	l.Message.Data = []byte("held")
	ended := make(chan error, 1)
	offer(t, slow, l)
	// Once it is on the wire, what comes after it is in other requests.
	if err := order.AwaitFired(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- slow.Flush(context.WithoutCancel(t.Context())) }()
	for i := range 5 {
		offer(t, quick, numbered(i))
	}
	if err := quick.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	expectError(t, <-ended, "dlq.Config.FlushTimeout (500ms) is over")
}

func TestWriter_AtTheCapOfferWaitsAndNotForEver(t *testing.T) {
	srv, cfg := fixture(t, func(c *Config) { c.MaxInFlightMessages, c.FlushTimeout = 3, 400*time.Millisecond })
	srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.NeverAnswer())
	w := opened(t, cfg)
	offer(t, w, numbered(0), numbered(1), numbered(2))
	expectError(t, w.Offer(t.Context(), numbered(3)), "dlq.Config.FlushTimeout (400ms) is over")
}

// A letter that found no room is not durable, though all that did are.
func TestWriter_FlushFailsAfterAnOfferThatFailed(t *testing.T) {
	srv, cfg := fixture(t, func(c *Config) { c.MaxInFlightMessages, c.FlushTimeout = 1, 400*time.Millisecond })
	gate := make(chan struct{})
	srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.WaitFor(gate))
	w := opened(t, cfg)
	offer(t, w, numbered(0))
	failed := w.Offer(t.Context(), numbered(1))
	close(gate)
	if err := srv.AwaitPublished(t.Context(), testTopic, 1); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err == nil || !errors.Is(err, failed) {
		t.Errorf("Flush returned %v after %v", err, failed)
	}
	if n := stats.ForQueue(ownerOf(t)).Published.Load(); n != 0 {
		t.Errorf("%d letters count as published", n)
	}
}

func TestWriter_UnboundedWaitsForNothingBeforeTheFlush(t *testing.T) {
	srv, cfg := fixture(t, func(c *Config) { c.MaxInFlightMessages = Unbounded })
	gate := make(chan struct{})
	srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.WaitFor(gate))
	w := opened(t, cfg)
	large := bytes.Repeat([]byte("x"), 1_000_000)
	for i := range 2000 { // twice the default cap
		offer(t, w, numbered(i))
	}
	for range 70 { // more than 64 MiB
		offer(t, w, Letter{Message: &message.Message{Data: large}})
	}
	if n := srv.Published(testTopic); n != 0 {
		t.Errorf("%d are stored before the gate opened", n)
	}
	close(gate)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := srv.Published(testTopic); n != 2070 {
		t.Errorf("%d letters are stored", n)
	}
}

func TestWriter_DropLetsGoOfWhatWasNotSent(t *testing.T) {
	srv, cfg := fixture(t)
	srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.NeverAnswer())
	w := opened(t, cfg)
	offer(t, w, numbered(0))
	w.Drop()
	w.Drop()
	if err := cfg.Close(ownerOf(t)); err != nil { // ends what was on the wire
		t.Error(err)
	}
	if n := srv.Published(testTopic); n != 0 {
		t.Errorf("%d are stored", n)
	}
}

// The queue never creates its topic: nothing would be consuming it.
func TestWriter_AMissingTopicFailsTheBundle(t *testing.T) {
	srv, cfg := fixture(t)
	if err := srv.DeleteTopic(testTopic); err != nil {
		t.Fatal(err)
	}
	w := opened(t, cfg)
	offer(t, w, numbered(0))
	err := w.Flush(t.Context())
	expectError(t, err, "dlq: dead-letter topic "+testTopic+" does not exist, and the queue never creates it", "gcloud pubsub topics create letters --project=p")
	if status.Code(err) != codes.NotFound || srv.Calls("CreateTopic") != 0 {
		t.Errorf("code %v, %d topics created", status.Code(err), srv.Calls("CreateTopic"))
	}
}

func TestWriter_AMissingPermissionFailsTheBundleAtOnce(t *testing.T) {
	srv, cfg := fixture(t)
	srv.Deny("Publish")
	w := opened(t, cfg)
	offer(t, w, numbered(0))
	expectError(t, w.Flush(t.Context()), "PermissionDenied", "roles/pubsub.publisher")
}

// The service may refuse a letter itself, as a topic with a schema does. Then it is
// its bundle that fails, however many there were, and only that.
func TestWriter_ARefusedLetterFailsItsBundleAndNoOther(t *testing.T) {
	srv, cfg := fixture(t)
	srv.RefuseMessages(testTopic, func(m *message.Message) bool { return string(Decode(m).Message.Data) == "bad" })
	bad, good := opened(t, cfg), opened(t, cfg)
	l := numbered(0)
	l.Message.Data = []byte("bad")
	for i := range 3 {
		offer(t, good, numbered(i))
	}
	offer(t, bad, l)
	if err := good.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	expectError(t, bad.Flush(t.Context()), "dlq: publish to "+testTopic, "InvalidArgument")
	if got := stored(srv); len(got) != 3 || got["bad"] != 0 {
		t.Errorf("stored %v", got)
	}
}

// A letter to the topic that refused it would be refused, or come round again.
func TestWriter_RefusesALetterOfItsOwnTopic(t *testing.T) {
	for _, n := range []int{0, WriteThrough} {
		srv, cfg := fixture(t, func(c *Config) { c.MaxInFlightMessages = n })
		w := opened(t, cfg)
		l := numbered(0)
		l.Destination = testTopic
		const own = "a record for " + testTopic + " failed, which is the topic of its dead-letter queue"
		expectError(t, w.Offer(t.Context(), l), own, "dlq.Config.Topic")
		expectError(t, w.Flush(t.Context()), own)
		w.Drop()
		if n := srv.Calls("Publish"); n != 0 {
			t.Errorf("%d requests", n)
		}
	}
}

// A refused message that nearly fills a request becomes a dead letter all the same,
// on a server that keeps the limits.
func TestWriter_ALetterOfAnySizeArrives(t *testing.T) {
	srv, cfg := fixture(t)
	w := opened(t, cfg)
	messages := []*message.Message{
		{Data: bytes.Repeat([]byte("a"), options.MaxRequestBytes-100)},
		{Data: bytes.Repeat([]byte("b"), 21_000_000), Attributes: map[string]string{"a\xff": strings.Repeat("v", 5000)}},
	}
	for _, m := range messages {
		offer(t, w, Letter{Destination: elsewhere, Error: "too large", Message: m}, numbered(1))
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	byID := make(map[string][]Entry)
	for _, m := range srv.Messages(testTopic) {
		if e := Decode(m); e.Part != nil {
			byID[e.Part.ID] = append(byID[e.Part.ID], e)
		}
	}
	found := 0
	for id, parts := range byID {
		whole, err := Join(parts...)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		for _, m := range messages {
			if bytes.Equal(m.Data, whole.Message.Data) && fmt.Sprint(m.Attributes) == fmt.Sprint(whole.Message.Attributes) {
				found++
			}
		}
	}
	if found != 2 || len(byID) != 2 || srv.Published(testTopic) != 2+3+2 {
		t.Errorf("%d of 2 are whole, %d ids, %d messages", found, len(byID), srv.Published(testTopic))
	}
	if got := stats.ForQueue(ownerOf(t)).Published.Load(); got != 4 {
		t.Errorf("%d letters are counted", got)
	}
}

// Credentials are the queue's own, read on the worker; neither path nor contents are
// told.
func TestConfig_OpenTellsWhatIsWrongWithTheCredentials(t *testing.T) {
	cfg := Config{Topic: testTopic, ServiceAccountKeyFile: "/no/such/secret.json"}
	_, err := cfg.Open(t.Context(), ownerOf(t))
	expectError(t, err, "dlq: dead-letter topic "+testTopic, "read the service account key file on this worker")
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error names the path: %v", err)
	}
	expectError(t, cfg.Check(t.Context(), ownerOf(t)), "read the service account key file on this worker")
}

// Two transforms share nothing, though they send to one topic.
func TestConfig_OwnersHaveCapsOfTheirOwn(t *testing.T) {
	srv, cfg := fixture(t, func(c *Config) { c.MaxInFlightMessages = 1 })
	gate := make(chan struct{})
	srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.WaitFor(gate))
	offer(t, opened(t, cfg), numbered(0))
	other, err := cfg.Open(t.Context(), "another")
	if err != nil {
		t.Fatal(err)
	}
	offer(t, other, numbered(1)) // does not wait for the first
	close(gate)
	if err := other.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if err := cfg.Close("another"); err != nil {
		t.Error(err)
	}
}
