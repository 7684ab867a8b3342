package publish

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

const (
	topic      = "projects/p/topics/abc"
	otherTopic = "projects/p/topics/other"
)

// A fakeService takes the requests of a pool. It keeps what it answered with
// success, and the largest number of messages and bytes it ever had at once.
type fakeService struct {
	// answer says how a request ends, without a lock held; nil is success.
	answer func(ctx context.Context, r *pubsubpb.PublishRequest) error

	mu        sync.Mutex // guards all below
	calls     int
	published []*pubsubpb.PublishRequest
	refused   []*pubsubpb.PublishRequest
	inFlight  int
	most      int
}

func (f *fakeService) send(ctx context.Context, p *payload, messages int) error {
	r := new(pubsubpb.PublishRequest)
	if err := proto.Unmarshal(p.buf, r); err != nil {
		panic(err)
	}
	if len(r.Messages) != messages {
		panic("the request has another number of messages than its batch says")
	}
	f.mu.Lock()
	f.calls++
	f.inFlight += messages
	f.most = max(f.most, f.inFlight)
	f.mu.Unlock()
	var err error
	if f.answer != nil {
		err = f.answer(ctx, r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight -= messages
	if err != nil {
		f.refused = append(f.refused, r)
	} else {
		f.published = append(f.published, r)
	}
	return err
}

// wire returns f as a connection on which no topic is created.
func (f *fakeService) wire() wire { return wire{send: f.send, hangUp: func() {}} }

// data returns the payloads of what was published, sorted.
func (f *fakeService) data() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, r := range f.published {
		for _, m := range r.Messages {
			out = append(out, string(m.Data))
		}
	}
	slices.Sort(out)
	return out
}

// sizes returns how many messages each published request had.
func (f *fakeService) sizes() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []int
	for _, r := range f.published {
		out = append(out, len(r.Messages))
	}
	return out
}

// hold returns an answer that waits until release is called, once for each
// request, or the request's context ends.
func hold() (answer func(context.Context, *pubsubpb.PublishRequest) error, release func(error)) {
	verdicts := make(chan error)
	answer = func(ctx context.Context, _ *pubsubpb.PublishRequest) error {
		select {
		case err := <-verdicts:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return answer, func(err error) { verdicts <- err }
}

// afterAdding has answers come once the test has added what it adds and waits: a
// refusal that comes before fails the next Add. It is for synctest bubbles only.
func afterAdding(answer func(context.Context, *pubsubpb.PublishRequest) error) func(context.Context, *pubsubpb.PublishRequest) error {
	return func(ctx context.Context, r *pubsubpb.PublishRequest) error {
		pass(time.Millisecond)
		return answer(ctx, r)
	}
}

// newTestPool makes a pool over f that is shut down when the test ends.
func newTestPool(t *testing.T, f *fakeService, o options.Publisher) *pool {
	t.Helper()
	return newPoolOf(t, f, Config{Publisher: o, Nonce: rand.Text()})
}

// newPoolOf is newTestPool with more of a configuration.
func newPoolOf(t *testing.T, f *fakeService, c Config) *pool {
	t.Helper()
	p := newPool(c.withDefaults(), f.wire(), func() {})
	t.Cleanup(func() {
		if !p.closeIf(func() bool { return true }) {
			t.Errorf("%d bundles are still open", p.bundles)
		}
		if !p.shutDown() {
			t.Error("requests outlive their pool")
		}
		if p.window.messages != 0 || p.window.bytes != 0 || len(p.window.waiting) != 0 || p.filling.first != nil || p.parked != 0 {
			t.Errorf("left in the pool: %+v, %d parked", p.window, p.parked)
		}
	})
	return p
}

func open(t *testing.T, p *pool) *Bundle {
	t.Helper()
	return openWith(t, p, Handlers{})
}

// openWith opens a bundle whose warnings go to the test's log.
func openWith(t *testing.T, p *pool, h Handlers) *Bundle {
	t.Helper()
	if h.Warn == nil {
		h.Warn = func(_ context.Context, text string) { t.Log(text) }
	}
	b, ok := p.begin(h.withDefaults())
	if !ok {
		t.Fatal("the pool is closed")
	}
	return b
}

// collect is a handler that keeps what was rejected.
func collect(into *[]Rejection) func(context.Context, Rejection) error {
	return func(_ context.Context, r Rejection) error {
		*into = append(*into, r)
		return nil
	}
}

// pass lets virtual time pass. It is for synctest bubbles only.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // moves a bubble's clock
}

func text(s string) *message.Message { return &message.Message{Data: []byte(s)} }

func mustAdd(t *testing.T, b *Bundle, data ...string) {
	t.Helper()
	for _, s := range data {
		if err := b.Add(t.Context(), topic, text(s), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func mustFinish(t *testing.T, b *Bundle) {
	t.Helper()
	if err := b.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// inFlight returns what the pool of b has taken in and not seen answered.
func inFlight(b *Bundle) (messages int, bytes int64) {
	l := b.Load()
	return l.Messages, l.Bytes
}
