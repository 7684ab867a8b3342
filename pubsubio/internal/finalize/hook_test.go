package finalize

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
)

// A harness drives the hooks as Beam's harness does.
type harness struct {
	t   *testing.T
	r   *registry
	ctx context.Context
}

func newHarness(t *testing.T, r *registry) *harness {
	t.Helper()
	ctx, err := r.hook().Init(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &harness{t, r, ctx}
}

// An instruction is a bundle between its request and its response.
type instruction struct {
	h     *harness
	ctx   context.Context
	req   *fnpb.InstructionRequest
	scope *Scope
}

func (h *harness) start(id string) *instruction {
	h.t.Helper()
	req := &fnpb.InstructionRequest{InstructionId: id, Request: &fnpb.InstructionRequest_ProcessBundle{ProcessBundle: &fnpb.ProcessBundleRequest{}}}
	ctx, err := h.r.hook().Req(h.ctx, req)
	if err != nil {
		h.t.Fatal(err)
	}
	scope, ok := FromContext(ctx)
	if !ok {
		h.t.Fatal("no scope in a bundle's context")
	}
	return &instruction{h, ctx, req, scope}
}

// end answers the bundle as the harness would, and returns what the runner is
// told of finalization.
func (i *instruction) end(native bool, failure string) (requiresFinalization bool) {
	i.h.t.Helper()
	resp := &fnpb.InstructionResponse{InstructionId: i.req.GetInstructionId(), Error: failure}
	if failure == "" {
		resp.Response = &fnpb.InstructionResponse_ProcessBundle{ProcessBundle: &fnpb.ProcessBundleResponse{RequiresFinalization: native}}
	}
	if err := i.h.r.hook().Resp(i.ctx, i.req, resp); err != nil {
		i.h.t.Fatal(err)
	}
	return resp.GetProcessBundle().GetRequiresFinalization()
}

// finalize sends FinalizeBundle and reports whether the harness itself got to
// see it; in any case the runner's answer must be a FinalizeBundleResponse.
func (h *harness) finalize(id string) (reached bool) {
	h.t.Helper()
	req := &fnpb.InstructionRequest{InstructionId: "f" + id, Request: &fnpb.InstructionRequest_FinalizeBundle{FinalizeBundle: &fnpb.FinalizeBundleRequest{InstructionId: id}}}
	ctx, err := h.r.hook().Req(h.ctx, req)
	if err != nil {
		h.t.Fatal(err)
	}
	resp := &fnpb.InstructionResponse{InstructionId: req.GetInstructionId()}
	reached = req.GetFinalizeBundle() != nil
	if reached {
		resp.Response = &fnpb.InstructionResponse_FinalizeBundle{FinalizeBundle: &fnpb.FinalizeBundleResponse{}}
	} else {
		resp.Response = &fnpb.InstructionResponse_HarnessMonitoringInfos{HarnessMonitoringInfos: &fnpb.HarnessMonitoringInfosResponse{}}
	}
	if err := h.r.hook().Resp(ctx, req, resp); err != nil {
		h.t.Fatal(err)
	}
	if resp.GetFinalizeBundle() == nil {
		h.t.Errorf("finalizing %s was answered with %T", id, resp.GetResponse())
	}
	return reached
}

// Beam's own finalizer fires for the first bundle of a plan only.
func TestHook_EveryBundleOfAPlanIsCalledBack(t *testing.T) {
	h := newHarness(t, new(registry))
	for n := range 5 {
		id, called := fmt.Sprint("inst", n), 0
		b := h.start(id)
		b.scope.OnCommitted(func(Signal) { called++ })
		if !b.end(false, "") {
			t.Fatalf("%s: the runner was not asked to finalize", id)
		}
		if reached := h.finalize(id); reached || called != 1 {
			t.Errorf("%s: called %d times, reached the harness %v; want once and not", id, called, reached)
		}
		if h.finalize(id); called != 1 {
			t.Errorf("%s: a second finalization called back again", id)
		}
	}
	if n := h.r.len(); n != 0 {
		t.Errorf("%d bundles are still kept", n)
	}
}

func TestHook_InterleavedBundlesKeepTheirOwnCallbacks(t *testing.T) {
	h := newHarness(t, new(registry))
	var got []string
	a, b := h.start("a"), h.start("b")
	a.scope.OnCommitted(func(Signal) { got = append(got, "a") })
	b.scope.OnCommitted(func(Signal) { got = append(got, "b1") })
	b.scope.OnCommitted(func(Signal) { got = append(got, "b2") })
	b.end(false, "")
	a.end(false, "")
	h.finalize("a")
	h.finalize("b")
	if want := []string{"a", "b1", "b2"}; !slices.Equal(got, want) {
		t.Errorf("called %v, want %v", got, want)
	}
}

// Runners number instructions per job: two jobs in one process use equal ids, and
// each harness's hook replaces the other's.
func TestHook_EqualInstructionsOfTwoHarnesses(t *testing.T) {
	r := new(registry)
	h1, h2 := newHarness(t, r), newHarness(t, r)
	var got []string
	for name, h := range map[string]*harness{"h1": h1, "h2": h2} {
		b := h.start("inst001")
		b.scope.OnCommitted(func(Signal) { got = append(got, name) })
		b.end(false, "")
	}
	h2.finalize("inst001")
	if !slices.Equal(got, []string{"h2"}) {
		t.Fatalf("finalizing h2's bundle called %v", got)
	}
	h1.finalize("inst001")
	if !slices.Equal(got, []string{"h2", "h1"}) {
		t.Errorf("finalizing h1's bundle called %v", got)
	}
}

func TestHook_NativeCallbackBesideOurs(t *testing.T) {
	h := newHarness(t, new(registry))
	called := 0
	both := h.start("both")
	both.scope.OnCommitted(func(Signal) { called++ })
	both.end(true, "")
	theirs := h.start("theirs")
	if !theirs.end(true, "") {
		t.Error("a bundle with a native callback only is not finalized any more")
	}
	if !h.finalize("both") || called != 1 {
		t.Errorf("ours was called %d times, want once, and theirs must run too", called)
	}
	if !h.finalize("theirs") {
		t.Error("a native callback was swallowed")
	}
}

// Prism finalizes bundles that asked for nothing; the harness would answer each
// with an error.
func TestHook_FinalizeForABundleThatRegisteredNothing(t *testing.T) {
	h := newHarness(t, new(registry))
	if h.start("none").end(false, "") {
		t.Error("a bundle that registered nothing asks to be finalized")
	}
	if h.finalize("none") || h.finalize("unheard of") {
		t.Error("the harness was asked to finalize what it never kept")
	}
	if n := h.r.len(); n != 0 {
		t.Errorf("%d bundles are kept for nothing", n)
	}
}

func TestHook_FailedBundleCallsFailedInOrderAndNothingElse(t *testing.T) {
	h := newHarness(t, new(registry))
	var got []string
	b := h.start("b")
	b.scope.OnFailed(func() { got = append(got, "sink") })
	b.scope.OnFailed(func() { got = append(got, "source") })
	b.scope.OnFinished(func() { got = append(got, "finished") })
	b.scope.OnCommitted(func(Signal) { got = append(got, "committed") })
	b.end(false, "boom")
	h.finalize("b")
	if want := []string{"sink", "source"}; !slices.Equal(got, want) {
		t.Errorf("called %v, want %v", got, want)
	}
}

func TestHook_BundleThatEndsWellCallsFinishedThenCommitted(t *testing.T) {
	h := newHarness(t, new(registry))
	b := h.start("b")
	var got []string
	b.scope.OnFailed(func() { t.Error("failed was called for a bundle that ended well") })
	b.scope.OnCommitted(func(Signal) { got = append(got, "committed") })
	b.scope.OnFinished(func() { got = append(got, "finished") })
	b.end(false, "")
	h.finalize("b")
	if want := []string{"finished", "committed"}; !slices.Equal(got, want) {
		t.Errorf("called %v, want %v", got, want)
	}
}

func TestHook_BundleThatIsNeverFinalizedExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, new(registry))
		called := 0
		run := func(id string) {
			b := h.start(id)
			b.scope.OnCommitted(func(Signal) { called++ })
			b.end(false, "")
		}
		run("old")
		time.Sleep(expiry / 2) //nolint:forbidigo // virtual time
		run("young")
		time.Sleep(expiry / 2) //nolint:forbidigo // virtual time
		run("new")
		if n := h.r.len(); n != 2 {
			t.Errorf("%d bundles are kept, want young and new", n)
		}
		h.finalize("old")
		if called != 0 {
			t.Error("an expired bundle called back")
		}
		if h.finalize("young"); called != 1 {
			t.Error("a bundle was dropped before it expired")
		}
	})
}

// The two-round rule compares when one bundle finished with when the
// finalization of another arrived.
func TestSignal_TicksOrderFinishAndArrival(t *testing.T) {
	h := newHarness(t, new(registry))
	signals := map[string]Signal{}
	run := func(id string) *instruction {
		b := h.start(id)
		b.scope.OnCommitted(func(s Signal) { signals[id] = s })
		return b
	}
	a, b := run("a"), run("b")
	a.end(false, "")
	h.finalize("a")
	b.end(false, "")
	h.finalize("b")
	if sa, sb := signals["a"], signals["b"]; sa.Finished >= sa.Arrived || sb.Finished <= sa.Arrived || sb.Arrived <= sb.Finished {
		t.Errorf("a %+v, b %+v: want a finished < a arrived < b finished < b arrived", sa, sb)
	}
}

func TestScope_ValueIsMadeOncePerBundle(t *testing.T) {
	type key struct{}
	h := newHarness(t, new(registry))
	a, b := h.start("a"), h.start("b")
	made := 0
	get := func(s *Scope) any { return s.Value(key{}, func() any { made++; return new(int) }) }
	if get(a.scope) != get(a.scope) || get(a.scope) == get(b.scope) || made != 2 {
		t.Errorf("made %d values, want one for each of two bundles", made)
	}
}

func TestFromContext_SaysWhetherThereIsAHarness(t *testing.T) {
	if _, ok := FromContext(t.Context()); ok {
		t.Error("a context without a harness has a scope")
	}
}
