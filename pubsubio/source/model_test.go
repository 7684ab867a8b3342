package source

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// play runs a schedule against the real reader and ledger, then lets all be well,
// and returns what did not hold.
func (p modelPlan) play(t *testing.T) (fault error) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w := newModelRunner(p)
		for i, s := range p.Steps {
			w.log("%d: %s(%d,%d)", i, s.do, s.n, s.m)
			modelDeeds[s.do](w, s.n, s.m)
			synctest.Wait()
			if w.fault != nil {
				break
			}
		}
		if w.fault == nil {
			w.settle()
		}
		if w.fault != nil {
			fault = fmt.Errorf("%w\n%s", w.fault, strings.Join(w.trace, "\n"))
			for _, p := range w.processes {
				p.kill()
			}
		}
	})
	return fault
}

// settle has nothing go wrong any more: every message is acknowledged, then nothing
// is left, and what nobody claims ends by itself.
func (w *modelRunner) settle() {
	w.service.mend()
	w.log("nothing goes wrong any more")
	for len(w.zombies) > 0 {
		w.end(w.zombies[0])
	}
	w.giveUp()
	for len(w.zombies) > 0 {
		w.fail(w.zombies[0])
	}
	if pass(10 * time.Second); w.calm {
		for _, p := range w.processes {
			if m := p.forgot(); m != nil {
				w.broken("%s is leased to %s, which does not know it any more", m, p.name)
			}
		}
	}
	const patience = 6 * time.Hour
	longest := min(idleTimeout/2, w.plan.MaxExtension/8) // Several commits within a lease, as MaxExtension asks for.
	for began, pause := time.Now(), time.Second; len(w.service.unsettled()) > 0 && w.fault == nil; pause = min(2*pause, longest) {
		told := len(w.trace)
		if w.round(0); len(w.now.emitted) == 0 {
			w.trace = w.trace[:told]
		}
		pass(pause)
		if time.Since(began) > patience {
			w.broken("%v were not acknowledged in %v without any fault", w.service.unsettled(), patience)
		}
	}
	if w.fault != nil {
		return
	}
	w.round(0) // An empty bundle.
	pass(2 * awaitFor)
	w.round(0)
	synctest.Wait()
	if s := w.processes[w.at()].left(); s != "" {
		w.broken("with everything acknowledged and the reader still claimed: %s", s)
	}
	for began := time.Now(); !w.processes[0].closed() || !w.processes[1].closed(); {
		pass(time.Minute)
		if time.Since(began) > patience {
			w.broken("readers that nobody claims are still there after %v", patience)
			return
		}
	}
	pass(2 * awaitFor) // What they returned when they ended.
	for _, p := range w.processes {
		if s := p.left(); s != "" {
			w.broken("after all has ended: %s", s)
		}
	}
}

// checkModels plays drawn schedules on every runner, side by side. How many for each
// is rapid's flag -rapid.checks.
func checkModels(t *testing.T, models map[string]modelPlan) {
	t.Helper()
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // Each fault is warned of.
	t.Cleanup(func() { slog.SetDefault(before) })
	for name, p := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				if err := drawModelPlan(rt, p).play(t); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// Faults put in on purpose, and the schedules until the first of the runners showed each:
//
//	a signal for a token that is not in the list counts          70
//	a claim from an unknown past abandons nothing                 4
//	a claim abandons the last attempt only                       33
//	a fenced attempt still takes                                  8
//	an empty attempt has no entry                                 1
//	the signal of an empty bundle does not count                  1
//	two rounds: a bundle that had finished before counts          1
//	two rounds: the first finalization commits                    4
//	a signal commits its own attempt and not those before         1
//	resumed: what came after the residual is committed as well   16
//	what is abandoned is forgotten, and not returned              1
//	a failed bundle is acknowledged                               3
//	the watermark passes what is buffered                        46
//	PerKey: only the messages of a failed bundle go back        122
//	PerKey: the stream opens before the returns are answered      1

// No message is acknowledged that a restore could still need, every message is
// acknowledged at last, and nothing is held for ever.
func TestModel_LosesNothingAndHoldsNothingForEver(t *testing.T) {
	checkModels(t, map[string]modelPlan{
		"atomic residuals, finalized":      {kind: atomicResiduals, rule: run.Finalized},
		"atomic residuals, two rounds":     {kind: atomicResiduals, rule: run.TwoRounds},
		"work items, finalized or resumed": {kind: workItems, rule: run.FinalizedOrResumed},
		"work items, two rounds":           {kind: workItems, rule: run.TwoRounds},
		"checkpoints, two rounds":          {kind: checkpoints, rule: run.TwoRounds},
	})
}

// The model must be able to fail: where a runner finalizes what its snapshot does not
// hold, to acknowledge at the first finalization is to lose messages.
func TestModel_FindsTheLossOfAcknowledgingAtOnce(t *testing.T) {
	p := modelPlan{
		kind: checkpoints, rule: run.Finalized, Conduct: modelConduct{Response: 1}, MaxExtension: time.Hour,
		Steps: modelSteps{{do: "publish"}, {do: "begin"}, {do: "snapshot"}, {do: "end"}, {do: "snapshot"}, {do: "bundle", n: 7}, {do: "complete"}, {do: "notify"}},
	}
	if err := p.play(t); err == nil || !strings.Contains(err.Error(), "m0 was acknowledged, and what emitted it is not durable") {
		t.Errorf("the model says %v", err)
	}
	p.rule = run.TwoRounds
	if err := p.play(t); err != nil {
		t.Error(err)
	}
}
