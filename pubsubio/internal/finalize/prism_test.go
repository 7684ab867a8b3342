package finalize

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/sdf"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/rtrackers/offsetrange"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
)

func TestMain(m *testing.M) {
	flag.Parse()
	beam.Init()
	os.Exit(m.Run())
}

func init() {
	register.DoFn5x2[context.Context, beam.BundleFinalization, *sdf.LockRTracker, string, func(int64), sdf.ProcessContinuation, error](&countFn{})
	register.Emitter1[int64]()
	register.Function1x0(discard)
}

func discard(int64) {}

// Counts of what countFn registered and what was called back, by job name.
var registered, called sync.Map

func counter(m *sync.Map, name string) *atomic.Int64 {
	v, _ := m.LoadOrStore(name, new(atomic.Int64))
	return v.(*atomic.Int64)
}

// countFn runs one bundle for each offset of its restriction.
type countFn struct{ Bundles int64 }

func (f *countFn) CreateInitialRestriction(string) offsetrange.Restriction {
	return offsetrange.Restriction{End: f.Bundles}
}

func (f *countFn) SplitRestriction(_ string, r offsetrange.Restriction) []offsetrange.Restriction {
	return []offsetrange.Restriction{r}
}

func (f *countFn) RestrictionSize(_ string, r offsetrange.Restriction) float64 { return r.Size() }

func (f *countFn) CreateTracker(r offsetrange.Restriction) *sdf.LockRTracker {
	return sdf.NewLockRTracker(offsetrange.NewTracker(r))
}

func (f *countFn) ProcessElement(ctx context.Context, _ beam.BundleFinalization, rt *sdf.LockRTracker, job string, emit func(int64)) (sdf.ProcessContinuation, error) {
	scope, ok := FromContext(ctx)
	if !ok {
		return nil, fmt.Errorf("no scope in the context of a bundle of %s", job)
	}
	at := rt.GetRestriction().(offsetrange.Restriction).Start
	if !rt.TryClaim(at) {
		return sdf.StopProcessing(), nil
	}
	emit(at)
	counter(&registered, job).Add(1)
	scope.OnCommitted(func(Signal) { counter(&called, job).Add(1) })
	return sdf.ResumeProcessingIn(0), nil
}

// runCount runs that many bundles on prism and reports how many callbacks were
// registered and called.
func runCount(ctx context.Context, job string, bundles int64) (reg, call int64, err error) {
	Enable()
	p, s := beam.NewPipelineWithRoot()
	out := beam.ParDo(s, &countFn{Bundles: bundles}, beam.Create(s, job))
	beam.ParDo0(s, discard, beam.Reshuffle(s, out))
	if _, err := prism.Execute(ctx, p); err != nil {
		return 0, 0, err
	}
	// The last finalization may still be on its way when the job has ended.
	reg = counter(&registered, job).Load()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); counter(&called, job).Load() < reg && time.Now().Before(deadline); {
		<-tick.C
	}
	return reg, counter(&called, job).Load(), nil
}

func TestPrism_200Bundles(t *testing.T) {
	reg, call, err := runCount(t.Context(), t.Name(), 200)
	if err != nil {
		t.Fatal(err)
	}
	if reg < 200 || call != reg {
		t.Errorf("%d callbacks registered, %d called", reg, call)
	}
}

func TestPrism_TwoPipelinesOf300BundlesAtOnce(t *testing.T) {
	if _, _, err := runCount(t.Context(), t.Name()+"/warm-up", 1); err != nil {
		t.Fatal(err) // Starts the one job server, which two first runs would race for.
	}
	var wg sync.WaitGroup
	for _, job := range []string{t.Name() + "/a", t.Name() + "/b"} {
		started := HarnessStarted()
		wg.Go(func() {
			reg, call, err := runCount(t.Context(), job, 300)
			if err != nil || reg < 300 || call != reg {
				t.Errorf("%s: %d callbacks registered, %d called, error %v", job, reg, call, err)
			}
		})
		<-started // Only submitting must not happen at once.
	}
	wg.Wait()
}
