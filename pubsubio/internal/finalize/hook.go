package finalize

import (
	"context"
	"sync/atomic"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/hooks"
	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
)

const hookName = "beam-pubsub-go/finalize"

// Workers learn from the pipeline's options which hooks are enabled, but must
// know the hook by then: init is the last moment common to all of them.
func init() {
	hooks.RegisterHook(hookName, func([]string) hooks.Hook { return Hook() })
}

// Hook returns what each harness of the process runs. Beam calls it; a test that
// plays the harness may, too.
func Hook() hooks.Hook { return awaiting.hook() }

// Enable makes the workers of every pipeline that is built by this process carry
// a bundle scope. It may be called any number of times, at pipeline
// construction.
func Enable() {
	if on, _ := hooks.IsEnabled(hookName); on {
		return
	}
	if err := hooks.EnableHook(hookName); err != nil {
		panic("finalize: " + err.Error()) //nolint:forbidigo // cannot happen: init has registered the hook
	}
}

// harnesses numbers the harnesses of this process; ticks orders the events that
// a Signal tells of.
var harnesses, ticks atomic.Uint64

type (
	harnessKey   struct{}
	swallowedKey struct{}
)

// hook returns the three functions that keep r. Each harness of the process makes
// its own through the factory, and the newest replaces the others for all
// harnesses: so nothing may be kept in a hook itself.
func (r *registry) hook() hooks.Hook {
	return hooks.Hook{Init: initHarness, Req: r.request, Resp: r.response}
}

// initHarness marks the context of a harness. Runners number instructions per
// job, so that two harnesses in one process use the same ids.
func initHarness(ctx context.Context) (context.Context, error) {
	harnessStarted()
	return context.WithValue(ctx, harnessKey{}, harnesses.Add(1)), nil
}

func idOf(ctx context.Context, instruction string) bundleID {
	harness, _ := ctx.Value(harnessKey{}).(uint64)
	return bundleID{harness, instruction}
}

// request opens a scope for a bundle that starts, and runs the callbacks of one
// that is finalized.
func (r *registry) request(ctx context.Context, req *fnpb.InstructionRequest) (context.Context, error) {
	switch {
	case req.GetProcessBundle() != nil:
		return context.WithValue(ctx, scopeKey{}, new(Scope)), nil
	case req.GetFinalizeBundle() != nil:
		arrived := ticks.Add(1)
		b := r.take(idOf(ctx, req.GetFinalizeBundle().GetInstructionId()))
		if b != nil {
			b.scope.commit(arrived)
		}
		if b != nil && b.native {
			return ctx, nil // Beam keeps callbacks of its own for this bundle.
		}
		// The harness knows nothing of this bundle, and would answer with an
		// error and log one. It gets a request that does nothing instead.
		req.Request = &fnpb.InstructionRequest_HarnessMonitoringInfos{
			HarnessMonitoringInfos: &fnpb.HarnessMonitoringInfosRequest{},
		}
		return context.WithValue(ctx, swallowedKey{}, true), nil
	}
	return ctx, nil
}

// response closes the scope of a bundle that has ended, and answers a
// finalization that request kept from the harness.
func (r *registry) response(ctx context.Context, req *fnpb.InstructionRequest, resp *fnpb.InstructionResponse) error {
	if ctx.Value(swallowedKey{}) != nil {
		resp.Response = &fnpb.InstructionResponse_FinalizeBundle{FinalizeBundle: &fnpb.FinalizeBundleResponse{}}
		return nil
	}
	scope, ok := FromContext(ctx)
	if !ok || req.GetProcessBundle() == nil {
		return nil
	}
	if resp.GetError() != "" {
		scope.fail()
		return nil
	}
	done := resp.GetProcessBundle()
	native := done.GetRequiresFinalization()
	if !scope.finish(ticks.Add(1)) && !native {
		return nil
	}
	done.RequiresFinalization = true
	r.add(&bundle{id: idOf(ctx, req.GetInstructionId()), scope: scope, native: native})
	return nil
}
