package source

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/exec"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// A truncated restriction is what the SDK's step behind a drain puts out.
type truncated struct {
	exec.Node
	restrictions []restriction
}

func (o *truncated) StartBundle(context.Context, string, exec.DataContext) error { return nil }
func (o *truncated) FinishBundle(context.Context) error                          { return nil }
func (o *truncated) ProcessElement(_ context.Context, v *exec.FullValue, _ ...exec.ReStream) error {
	o.restrictions = append(o.restrictions, v.Elm.(*exec.FullValue).Elm2.(*exec.FullValue).Elm.(restriction))
	return nil
}

// truncate has the SDK truncate a restriction, as it does for a runner that drains.
func (h *harness) truncate(r restriction) restriction {
	h.t.Helper()
	fn, err := graph.NewDoFn(h.fn, graph.NumMainInputs(graph.MainSingle))
	if err != nil {
		h.t.Fatal(err)
	}
	out := new(truncated)
	step := &exec.TruncateSizedRestriction{UID: 1, Fn: fn, Out: out}
	element := &exec.FullValue{Elm2: 1.0, Elm: &exec.FullValue{
		Elm:  &exec.FullValue{Elm: h.a},
		Elm2: &exec.FullValue{Elm: r, Elm2: int64(minWatermark)},
	}}
	ctx := h.t.Context()
	for _, do := range []func() error{
		func() error { return step.Up(ctx) },
		func() error { return step.StartBundle(ctx, "drain", exec.DataContext{}) },
		func() error { return step.ProcessElement(ctx, element) },
		func() error { return step.FinishBundle(ctx) },
	} {
		if err := do(); err != nil {
			h.t.Fatal(err)
		}
	}
	if len(out.restrictions) != 1 {
		h.t.Fatalf("the SDK truncated one restriction to %d", len(out.restrictions))
	}
	return out.restrictions[0]
}

// C22: a pipeline with a splittable DoFn drained for ever. What is emitted is
// acknowledged, what is not is returned, and the restriction ends.
func TestReadFn_C22_DrainSettlesAndEnds(t *testing.T) {
	for name, rule := range map[string]run.Rule{"finalized": run.Finalized, "two rounds": run.TwoRounds, "finalized or resumed": run.FinalizedOrResumed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newReadHarness(t, rule)
				h.group.config.Subscriber.MaxRecordsPerBundle = 500
				start := h.opened(first, 2500)
				p := h.process(start)
				if len(p.emitted) != 500 || h.buffered() != 2000 {
					t.Fatalf("%d emitted and %d buffered, error %v", len(p.emitted), h.buffered(), p.err)
				}
				p.end("")
				began, r := time.Now(), h.truncate(*p.residual)
				if r.Token != p.residual.Token || r.Parent != p.residual.Parent || r.Mode != settling {
					t.Fatalf("%+v was truncated to %+v", p.residual, r)
				}
				unfinalized := []*processed{p}
				for done := false; !done; {
					if time.Since(began) > 30*time.Second {
						t.Fatal("the drain takes more than 30 s")
					}
					p = h.process(r)
					if p.err != nil || len(p.emitted) != 0 {
						t.Fatalf("emitted %v while draining, error %v", p.emitted, p.err)
					}
					if done = !p.resume; !done {
						r = *p.residual
					}
					p.end("")
					for _, u := range unfinalized { // The word of each comes a bundle later.
						u.finalize()
					}
					unfinalized = []*processed{p}
					pass(time.Second)
				}
				synctest.Wait()
				h.service.set(func(s *fakeService) {
					slices.Sort(s.acked)
					slices.Sort(s.returned)
					if a, b := len(slices.Compact(s.acked)), len(slices.Compact(s.returned)); a != 500 || b != 2000 {
						t.Errorf("%d acknowledged and %d returned, want 500 and 2000", a, b)
					}
				})
			})
		})
	}
}
