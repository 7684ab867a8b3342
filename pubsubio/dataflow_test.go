package pubsubio_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/graphx"
	v1pb "github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/graphx/v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/protox"
	pipepb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/dataflow/dataflowlib"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// What Beam's runner makes of a pipeline for Dataflow, as far as that goes without the
// service: the model that workers and service get, and the job around it.
type translated struct {
	model     *pipepb.Pipeline
	sent      map[string]string // the DoFns in the model, as JSON by their types
	streaming bool
}

// translate does what --runner=dataflow --dry_run does, with nothing staged and nobody
// asked.
func translate(t *testing.T, build func(s beam.Scope)) translated {
	t.Helper()
	before := flag.Lookup("runner").Value.String()
	t.Cleanup(func() { _ = flag.Set("runner", before) })
	if err := flag.Set("runner", "dataflow"); err != nil { // A read is told its runner when it is built.
		t.Fatal(err)
	}
	p, s := beam.NewPipelineWithRoot()
	build(s)
	edges, nodes, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	out := translated{sent: make(map[string]string), streaming: !graph.Bounded(nodes)}
	environment := &pipepb.Environment{
		Urn:     graphx.URNEnvDocker,
		Payload: protox.MustEncode(&pipepb.DockerPayload{ContainerImage: "worker"}),
	}
	if out.model, err = graphx.Marshal(edges, &graphx.Options{Environment: environment}); err != nil {
		t.Fatal(err)
	}
	for _, e := range edges {
		if e.DoFn != nil && e.DoFn.Recv != nil {
			out.sent[typeName(e.DoFn.Recv)] = asJSON(t, e.DoFn.Recv)
		}
	}
	return out
}

func typeName(v any) string { return fmt.Sprintf("%T", v) }

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// parDos are the ParDos of the model by the DoFns that a worker makes of them.
func (tr translated) parDos(t *testing.T) map[string]*pipepb.ParDoPayload {
	t.Helper()
	out := make(map[string]*pipepb.ParDoPayload)
	for name, x := range tr.model.GetComponents().GetTransforms() {
		if x.GetSpec().GetUrn() != graphx.URNParDo {
			continue
		}
		var payload pipepb.ParDoPayload
		if err := proto.Unmarshal(x.GetSpec().GetPayload(), &payload); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var of v1pb.TransformPayload
		if err := protox.DecodeBase64(string(payload.GetDoFn().GetPayload()), &of); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if of.GetEdge() == nil {
			continue // an end of a Reshuffle
		}
		_, fn, _, _, _, err := graphx.DecodeMultiEdge(of.GetEdge())
		if err != nil {
			t.Fatalf("%s cannot be made on a worker: %v", name, err)
		}
		if fn == nil || fn.Recv == nil {
			continue // a function, which is its name
		}
		if sent, got := tr.sent[typeName(fn.Recv)], asJSON(t, fn.Recv); got != sent {
			t.Errorf("%s is %s on a worker, was sent as %s", typeName(fn.Recv), got, sent)
		}
		out[typeName(fn.Recv)] = &payload
	}
	return out
}

// urns are those of the model's transforms.
func (tr translated) urns() []string {
	seen := make(map[string]bool)
	for _, x := range tr.model.GetComponents().GetTransforms() {
		if urn := x.GetSpec().GetUrn(); urn != "" { // Else it holds others.
			seen[urn] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Workers pull and publish by themselves, on Dataflow as elsewhere: the job has none of
// the service's own transforms, streams, and says that bundles are to be finalized.
func TestDataflow_Translates(t *testing.T) {
	const out = "projects/shop/topics/paid"
	for name, tc := range map[string]struct {
		build func(s beam.Scope)
		fns   []string // that it must have
		needs []string // beside finalization and splittable DoFns
	}{
		"the front door, a subscription": {
			build: func(s beam.Scope) {
				pubsubio.Write(s, "shop", "paid", pubsubio.Read(s, "shop", pubsubio.ReadOptions{Subscription: "orders"}))
			},
			fns: []string{"*source.startupFn", "*source.readFn", "*sink.writeFn"},
		},
		"the front door, a topic and whole messages": {
			build: func(s beam.Scope) {
				pubsubio.Write(s, "shop", "paid", pubsubio.Read(s, "shop", pubsubio.ReadOptions{
					Topic: "orders", WithAttributes: true, IDAttribute: "id", TimestampAttribute: "at",
				}))
			},
			fns: []string{"*source.startupFn", "*source.readFn", "*sink.writeFn"},
		},
		"source and sink": {
			build: func(s beam.Scope) {
				lines := source.Read(s, source.Config{Subscriptions: source.From(orders)}, source.String)
				sink.Write(s, sink.Config{Topic: out}, sink.String, lines)
			},
			fns: []string{"*source.startupFn", "*source.readFn", "*sink.writeFn"},
		},
		"order, and dead letters": {
			build: func(s beam.Scope) {
				queue := dlq.Config{Topic: "projects/shop/topics/dead-letters"}
				messages, failed := source.ReadWithFailures(s, source.Config{
					Subscriptions: source.From(orders), Ordering: options.PerKey, OnDecodeFailure: source.EmitFailed(),
				}, source.Message)
				dlq.Write(s, queue, failed)
				sink.Write(s, sink.Config{
					Topic: out, OrderBy: options.OrderByKey, OnFailure: sink.SendTo(queue),
					Publisher: options.Publisher{EnableMessageOrdering: true},
				}, sink.Message, messages)
			},
			fns:   []string{"*source.startupFn", "*source.readFn", "*sink.keyFn", "*sink.orderedFn", "*dlq.writeFn"},
			needs: []string{graphx.URNRequiresStatefulProcessing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := translate(t, tc.build)
			tr.checkTransforms(t, tc.fns)
			needs := append([]string{graphx.URNRequiresSplittableDoFn, graphx.URNRequiresBundleFinalization}, tc.needs...)
			slices.Sort(needs)
			if got := slices.Sorted(slices.Values(tr.model.GetRequirements())); !slices.Equal(got, needs) {
				t.Errorf("requires %q, want %q", got, needs)
			}
			job, err := dataflowlib.Translate(t.Context(), tr.model, &dataflowlib.JobOptions{
				Name: "job", Project: "shop", Region: "europe-west1", Streaming: tr.streaming,
			}, "gs://b/worker", "gs://b/model", "")
			if err != nil || job.Type != "JOB_TYPE_STREAMING" {
				t.Errorf("job %+v, %v", job, err)
			}
		})
	}
}

// checkTransforms looks at the transforms of the model: they are Beam's and this
// module's, and a worker can make these DoFns.
func (tr translated) checkTransforms(t *testing.T, fns []string) {
	t.Helper()
	for _, urn := range tr.urns() {
		if strings.Contains(urn, "pubsub") {
			t.Errorf("has the service's own %s", urn)
		}
	}
	parDos := tr.parDos(t)
	for _, fn := range fns {
		if parDos[fn] == nil {
			t.Fatalf("has no %s, but %q", fn, slices.Sorted(maps.Keys(parDos)))
		}
	}
	read := parDos["*source.readFn"]
	if read.GetRestrictionCoderId() == "" || !read.GetRequestsFinalization() {
		t.Errorf("the read is %v", read)
	}
	// Dataflow's own commit rule: a residual that is resumed commits, too.
	if sent := tr.sent["*source.readFn"]; !strings.Contains(sent, `"Rule":2`) {
		t.Errorf("the read has another commit rule: %s", sent)
	}
}
