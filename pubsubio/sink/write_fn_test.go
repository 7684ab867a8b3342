package sink

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// instance returns a DoFn as a worker makes it: from what travels, set up.
func instance(t *testing.T, pool publish.Config) *writeFn {
	t.Helper()
	fn := &writeFn{preparation: preparation{Topic: topic, Encoder: keyOf(t, encodeWord)}, publication: publication{Pool: pool}}
	if err := fn.Setup(); err != nil {
		t.Fatal(err)
	}
	if err := fn.StartBundle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return fn
}

func process(t *testing.T, fn *writeFn, words ...string) {
	t.Helper()
	for _, w := range words {
		if err := fn.ProcessElement(t.Context(), 0, w, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Two bundles of a worker share requests; the one that failed took the other
// down, or its messages went out with it.
func TestWriteFn_AFailedBundleTakesNobodyDown(t *testing.T) {
	srv := server(t)
	pool := publish.Config{Nonce: t.Name(), Publisher: options.Publisher{BatchDelay: time.Hour}}
	pool.Connection.EmulatorEndpoint = srv.Endpoint()
	bad, good := instance(t, pool), instance(t, pool)
	process(t, bad, "b1")
	process(t, good, "g1")
	process(t, bad, "b2")
	if err := bad.ProcessElement(t.Context(), 0, "keyed", nil); err == nil {
		t.Fatal("the ordering key was swallowed")
	}
	bad.bundle.Drop() // the hook's part
	process(t, good, "g2")
	if err := good.FinishBundle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got, want := published(srv), []string{"g1", "g2"}; !slices.Equal(got, want) {
		t.Errorf("published %v, want %v", got, want)
	}
	if got := inFlight(t, good); got != 0 {
		t.Errorf("%d messages left in the pool", got)
	}
}

// The instance of a bundle that failed may be used for another one.
func TestWriteFn_StartsAfreshAfterAFailedBundle(t *testing.T) {
	srv := server(t)
	pool := publish.Config{Nonce: t.Name(), Publisher: options.Publisher{BatchDelay: time.Hour}}
	pool.Connection.EmulatorEndpoint = srv.Endpoint()
	fn := instance(t, pool)
	process(t, fn, "lost", "empty")
	if err := fn.StartBundle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	process(t, fn, "kept")
	if err := fn.FinishBundle(t.Context(), nil); err != nil {
		t.Errorf("the bundle failed by the refusal of the one before: %v", err)
	}
	if got, want := published(srv), []string{"kept"}; !slices.Equal(got, want) {
		t.Errorf("published %v, want %v", got, want)
	}
	if err := fn.Teardown(); err != nil {
		t.Error(err)
	}
}

// Sixteen bundles at once keep the worker's caps, as the server sees them.
func TestWriteFn_ManyBundlesShareTheCaps(t *testing.T) {
	srv := server(t)
	srv.Delay("Publish", time.Millisecond)
	pool := publish.Config{Nonce: t.Name(), Publisher: options.Publisher{MaxInFlightMessages: 40, BatchElementCount: 10}}
	pool.Connection.EmulatorEndpoint = srv.Endpoint()
	var bundles sync.WaitGroup
	for i := range 16 {
		bundles.Go(func() {
			fn := &writeFn{preparation: preparation{Topic: topic, Encoder: keyOf(t, String)}, publication: publication{Pool: pool}}
			if err := fn.Setup(); err != nil {
				t.Error(err)
				return
			}
			for round := range 3 {
				if err := fn.StartBundle(t.Context(), nil); err != nil {
					t.Error(err)
				}
				for j := range 50 {
					if err := fn.ProcessElement(t.Context(), 0, fmt.Sprintf("%d/%d/%d", i, round, j), nil); err != nil {
						t.Error(err)
					}
				}
				if n := fn.bundle.Load().Messages; n > 40 {
					t.Errorf("%d messages in flight", n)
				}
				if err := fn.FinishBundle(t.Context(), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	bundles.Wait()
	if err := publish.Close(pool); err != nil {
		t.Error(err)
	}
	got := published(srv)
	if len(got) != 16*3*50 || len(slices.Compact(got)) != len(got) {
		t.Errorf("%d published, %d distinct, want %d", len(published(srv)), len(got), 16*3*50)
	}
}

func TestWriteFn_EndsWhenAnEarlierMessageIsRefused(t *testing.T) {
	srv := server(t)
	if err := srv.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	pool := publish.Config{
		Nonce: t.Name(), Disposition: options.CreateNever,
		Publisher: options.Publisher{BatchElementCount: 1, MaxInFlightMessages: 1},
	}
	pool.Connection.EmulatorEndpoint = srv.Endpoint()
	fn := instance(t, pool)
	process(t, fn, "a")
	// At the cap: the answer to the first comes before there is room.
	err := fn.ProcessElement(t.Context(), 0, "b", nil)
	if err == nil || !strings.Contains(err.Error(), "sink: publish to "+topic+": NotFound") {
		t.Errorf("ProcessElement: %v", err)
	}
	if err := fn.Teardown(); err != nil {
		t.Error(err)
	}
}
