package source

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/sdf"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/hooks"
	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/byname"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A harness drives a readFn as Beam's does: hooks, tracker, estimator and all,
// over the reader of a fixture.
type harness struct {
	*fixture
	hook hooks.Hook
	fn   *readFn
	ctx  context.Context
	a    assignment
	n    int
}

func newReadHarness(t *testing.T, rule run.Rule) *harness {
	t.Helper()
	name, err := byname.Key(Message, reflect.TypeFor[*message.Message]())
	if err != nil {
		t.Fatal(err)
	}
	hook := finalize.Hook()
	ctx, err := hook.Init(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, rule, nil)
	f.group.nonce = nonceOf(t)
	groups.Lock()
	groups.byNonce[f.group.nonce] = f.group
	groups.Unlock()
	return &harness{
		fixture: f,
		hook:    hook,
		fn:      &readFn{settings{Decoder: name, Binding: run.Binding{Rule: rule}}},
		ctx:     ctx,
		a:       assignment{Version: version, ReadNonce: f.group.nonce, ReaderNonce: "reader", Subscription: testSubscription},
	}
}

// opened runs the bundle that opens the stream, on which n messages then come, and
// returns its residual.
func (h *harness) opened(r restriction, n int) restriction {
	h.t.Helper()
	p := h.process(r)
	p.end("")
	h.service.deliver(n)
	synctest.Wait()
	return *p.residual
}

// A processed bundle has left ProcessElement.
type processed struct {
	h        *harness
	ctx      context.Context
	req      *fnpb.InstructionRequest
	err      error
	emitted  []string
	failed   []Failed
	residual *restriction // nil where the restriction has ended
	resume   bool
}

// process runs a bundle of one restriction up to the end of ProcessElement.
func (h *harness) process(r restriction) *processed {
	h.t.Helper()
	h.n++
	p := &processed{h: h, req: &fnpb.InstructionRequest{
		InstructionId: fmt.Sprint("inst", h.n),
		Request:       &fnpb.InstructionRequest_ProcessBundle{ProcessBundle: &fnpb.ProcessBundleRequest{}},
	}}
	var err error
	if p.ctx, err = h.hook.Req(h.ctx, p.req); err != nil {
		h.t.Fatal(err)
	}
	rt := h.fn.CreateTracker(r)
	emit := func(_ beam.EventTime, record beam.X) {
		p.emitted = append(p.emitted, record.(*message.Message).ID)
	}
	failed := func(_ beam.EventTime, f Failed) { p.failed = append(p.failed, f) }
	var c sdf.ProcessContinuation
	c, p.err = h.fn.ProcessElement(p.ctx, newEstimator(int64(minWatermark)), nil, rt, h.a, emit, failed)
	if p.err == nil && c.ShouldResume() {
		p.resume = true
		_, residual, err := rt.TrySplit(0)
		if err != nil || residual == nil || !rt.IsDone() {
			h.t.Fatalf("the tracker gives %v, error %v, done %v", residual, err, rt.IsDone())
		}
		next := residual.(restriction)
		p.residual = &next
	}
	return p
}

// end answers the runner, well or with a failure.
func (p *processed) end(failure string) {
	resp := &fnpb.InstructionResponse{InstructionId: p.req.GetInstructionId(), Error: failure}
	if failure == "" {
		resp.Response = &fnpb.InstructionResponse_ProcessBundle{ProcessBundle: &fnpb.ProcessBundleResponse{}}
	}
	if err := p.h.hook.Resp(p.ctx, p.req, resp); err != nil {
		p.h.t.Fatal(err)
	}
}

// finalize is the runner's finalization of the bundle.
func (p *processed) finalize() {
	_, err := p.h.hook.Req(p.h.ctx, &fnpb.InstructionRequest{InstructionId: "f", Request: &fnpb.InstructionRequest_FinalizeBundle{
		FinalizeBundle: &fnpb.FinalizeBundleRequest{InstructionId: p.req.GetInstructionId()},
	}})
	if err != nil {
		p.h.t.Fatal(err)
	}
	synctest.Wait()
}

func (p *processed) want(ids ...string) {
	p.h.t.Helper()
	if p.err != nil || !slices.Equal(p.emitted, ids) {
		p.h.t.Errorf("the bundle emitted %v, error %v, want %v", p.emitted, p.err, ids)
	}
}

var first = restriction{Version: version, Left: -1}

func TestReadFn_FinalizedBundleIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newReadHarness(t, run.Finalized)
		defer h.close(t.Context())
		p := h.process(h.opened(first, 2))
		p.want("m1", "m2")
		p.end("")
		synctest.Wait()
		h.service.want(t, nil, nil)
		p.finalize()
		h.service.want(t, []string{"a1", "a2"}, nil)
	})
}

// The runner processes one residual twice: its first bundle was lost without a
// word, or was given to another worker and back. The late signals of the first
// must acknowledge nothing.
func TestReadFn_ResidualClaimedTwice(t *testing.T) {
	for _, rule := range []run.Rule{run.Finalized, run.TwoRounds} {
		t.Run(fmt.Sprint("rule ", rule), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newReadHarness(t, rule)
				defer h.close(t.Context())
				start := h.opened(first, 2)
				lost := h.process(start)
				lost.want("m1", "m2")
				again := h.process(start) // Before the first has even ended.
				synctest.Wait()
				again.want()
				h.service.want(t, nil, []string{"a1", "a2"})
				lost.end("")
				lost.finalize() // Late, and void.
				h.service.want(t, nil, []string{"a1", "a2"})
				again.end("")
				h.service.set(func(s *fakeService) { s.returned = nil })
				h.service.deliver(2)
				synctest.Wait()
				next := h.process(*again.residual)
				next.want("m1", "m2")
				next.end("")
				next.finalize()
				settle := h.process(*next.residual)
				settle.end("")
				settle.finalize()
				h.service.want(t, []string{"a1", "a2"}, nil)
			})
		})
	}
}

func TestReadFn_FailedBundleReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newReadHarness(t, run.Finalized)
		defer h.close(t.Context())
		p := h.process(h.opened(first, 2))
		p.want("m1", "m2")
		p.end("the sink failed")
		p.finalize() // Runners do not, and if one did, it would mean nothing.
		h.service.want(t, nil, []string{"a1", "a2"})
	})
}

// Two rounds close also while nothing comes.
func TestReadFn_TwoRoundsCloseWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newReadHarness(t, run.TwoRounds)
		defer h.close(t.Context())
		p := h.process(h.opened(first, 1))
		p.end("")
		p.finalize()
		h.service.want(t, nil, nil)
		idle := h.process(*p.residual)
		idle.want()
		idle.end("")
		idle.finalize()
		h.service.want(t, []string{"a1"}, nil)
	})
}

// A limited read ends only in a bundle that emits nothing, once nothing is owed.
func TestReadFn_LimitEndsAfterEverythingIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newReadHarness(t, run.Finalized)
		p := h.process(h.opened(restriction{Version: version, Left: 2}, 3))
		p.want("m1", "m2")
		if !p.resume || p.residual.Left != 0 {
			t.Fatalf("after the limit: resume %v, residual %+v", p.resume, p.residual)
		}
		p.end("")
		owing := h.process(*p.residual)
		if !owing.resume || owing.residual.Mode != settling {
			t.Fatalf("the restriction ends while messages are owed: %+v", owing)
		}
		owing.end("")
		p.finalize()
		last := h.process(*owing.residual)
		if last.err != nil || last.resume {
			t.Errorf("the settled restriction goes on: %+v", last)
		}
		last.end("")
		h.service.want(t, []string{"a1", "a2"}, []string{"a3"})
	})
}

// Stopping must not turn into a hot loop while acknowledgements are slow.
func TestReadFn_StoppingRunWaitsForItsAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newReadHarness(t, run.Finalized)
		r := run.Start(run.Finalized, true)
		h.group.run = r
		defer h.close(t.Context())
		p := h.process(h.opened(first, 1))
		p.end("")
		r.Stop()
		began, bundles := time.Now(), 0
		for time.Since(began) < 5*time.Second {
			p = h.process(*p.residual)
			p.end("")
			bundles++
		}
		if bundles > 60 {
			t.Errorf("%d bundles in 5 s of settling", bundles)
		}
	})
}

// A read that is run without a harness says what to do.
func TestReadFn_WithoutAHarness(t *testing.T) {
	fn := &readFn{}
	_, err := fn.ProcessElement(t.Context(), newEstimator(0), nil, fn.CreateTracker(first), assignment{}, nil, nil)
	if err == nil || errors.Is(err, errFenced) {
		t.Errorf("error %v", err)
	}
}

func TestReadFn_ResumeDelay(t *testing.T) {
	onPrism, elsewhere := &readFn{settings{Binding: run.Binding{Prism: true}}}, &readFn{}
	for idle, want := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		if got := elsewhere.resumeDelay(idle); got != want {
			t.Errorf("after %d idle bundles it is %v, want %v", idle, got, want)
		}
		if got := onPrism.resumeDelay(idle); got != 0 {
			t.Errorf("on prism it is %v", got)
		}
	}
}

// What comes while a bundle waits for it is emitted in that bundle, however
// short bundles are.
func TestReadFn_ShortBundleEmitsWhatItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newReadHarness(t, run.Finalized)
		defer h.close(t.Context())
		h.group.config.Subscriber.MaxBundleDuration = 20 * time.Millisecond
		start := h.process(first)
		start.end("")
		go func() {
			pass(50 * time.Millisecond)
			h.service.deliver(2)
		}()
		p := h.process(*start.residual)
		p.want("m1", "m2")
		p.end("")
	})
}
