package dlq

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/window"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/direct" //nolint:staticcheck // deprecated, and supported here
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

type (
	// A misfit is a user's failure.
	misfit struct{ Word string }
	// One that nobody has registered.
	stranger struct{ Word string }
)

func (m misfit) DeadLetter() Letter {
	return Letter{Connector: "test", Destination: "nowhere", Message: message.New([]byte(m.Word)), Error: "unfit", Time: aTime}
}

func (s stranger) DeadLetter() Letter { return misfit(s).DeadLetter() }

func init() {
	beam.RegisterType(reflect.TypeFor[misfit]())
	register.Function1x1(toMisfit)
	register.Function1x2(failAtLast)
	beam.RegisterFunction(toPair)
}

func toMisfit(word string) misfit { return misfit{word} }

func toPair(word string) (string, misfit) { return word, misfit{word} }

// failAtLast is a step of the same bundle that fails behind others.
func failAtLast(word string) (misfit, error) {
	if word == "last" {
		return misfit{}, errors.New("the producer failed")
	}
	return misfit{word}, nil
}

// onPrism builds and runs a pipeline, and ends its run as the front door does.
func onPrism(ctx context.Context, build func(beam.Scope)) error {
	p, s := beam.NewPipelineWithRoot()
	build(s)
	_, err := prism.Execute(ctx, p)
	edges, _, buildErr := p.Build()
	if buildErr != nil {
		return buildErr
	}
	for _, edge := range edges {
		if edge.DoFn == nil {
			continue
		}
		if e, ok := edge.DoFn.Recv.(run.Ender); ok {
			err = errors.Join(err, e.EndRun())
		}
	}
	return err
}

func words(letters []Letter) []string {
	var out []string
	for _, l := range letters {
		out = append(out, string(l.Message.Data))
	}
	slices.Sort(out)
	return out
}

func TestWrite_SendsEveryFailure(t *testing.T) {
	all := []string{"a", "b", "c"}
	windowed := func(s beam.Scope, col beam.PCollection) beam.PCollection {
		return beam.WindowInto(s, window.NewFixedWindows(time.Minute), col)
	}
	asIs := func(_ beam.Scope, col beam.PCollection) beam.PCollection { return col }
	for name, place := range map[string]func(beam.Scope, beam.PCollection) beam.PCollection{"global": asIs, "windowed": windowed} {
		t.Run(name, func(t *testing.T) {
			q := notedQueue{Name: ownerOf(t)}
			err := onPrism(t.Context(), func(s beam.Scope) {
				Write(s, q, place(s, beam.ParDo(s, toMisfit, beam.CreateList(s, all))))
			})
			if err != nil {
				t.Fatal(err)
			}
			n := q.notes()
			if got := words(n.durable); !slices.Equal(got, all) {
				t.Errorf("durable %v", got)
			}
			if n.calls[0] != "check" || n.calls[len(n.calls)-1] != "close" || slices.Contains(n.calls, "drop") {
				t.Errorf("asked %v", n.calls)
			}
		})
	}
}

func TestWrite_OnTheDirectRunner(t *testing.T) {
	q := notedQueue{Name: ownerOf(t)}
	p, s := beam.NewPipelineWithRoot()
	Write(s, q, beam.ParDo(s, toMisfit, beam.Create(s, "a", "b")))
	if _, err := direct.Execute(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	n := q.notes()
	if got := words(n.durable); !slices.Equal(got, []string{"a", "b"}) || n.calls[len(n.calls)-1] != "close" {
		t.Errorf("durable %v, asked %v", got, n.calls)
	}
}

func TestWrite_ABundleThatFailsDropsItsLetters(t *testing.T) {
	q := notedQueue{Name: ownerOf(t)}
	err := onPrism(t.Context(), func(s beam.Scope) {
		Write(s, q, beam.ParDo(s, failAtLast, beam.Create(s, "a", "b", "last")))
	})
	expectError(t, err, "the producer failed")
	if n := q.notes(); !slices.Contains(n.calls, "drop") || slices.Contains(n.calls, "flush") || len(n.durable) > 0 {
		t.Errorf("asked %v, durable %v", n.calls, n.durable)
	}
}

func TestWrite_AQueueThatFailsFailsTheJob(t *testing.T) {
	for _, at := range []string{"check", "open", "offer", "flush"} {
		q := notedQueue{Name: ownerOf(t) + at, FailAt: at}
		err := onPrism(t.Context(), func(s beam.Scope) {
			Write(s, q, beam.ParDo(s, toMisfit, beam.Create(s, "a")))
		})
		expectError(t, err, "the dead-letter queue: out of order")
		if n := q.notes(); len(n.durable) > 0 {
			t.Errorf("%s: durable %v", at, n.durable)
		}
	}
}

func TestTryWrite_SaysWhatIsWrong(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	good := notedQueue{Name: "n"}
	texts := beam.Create(s, "a")
	misfits := beam.ParDo(s, toMisfit, texts)
	for name, c := range map[string]struct {
		queue Queue
		col   beam.PCollection
		want  string
	}{
		"no queue":       {nil, misfits, "dlq.Write: the dead-letter queue is nil"},
		"unregistered":   {unregistered{}, misfits, "dlq.Write: the dead-letter queue's type dlq.unregistered is not registered: call dlq.Register[dlq.unregistered]() in init"},
		"invalid":        {Config{Topic: "t"}, misfits, `dlq.Write: dlq.Config.Topic: topic "t": must have the form projects/<project>/topics/<id>`},
		"no collection":  {good, beam.PCollection{}, "dlq.Write: the collection is not valid"},
		"no failures":    {good, texts, "dlq.Write: the collection holds string, which has no method DeadLetter() dlq.Letter"},
		"pairs":          {good, beam.ParDo(s, toPair, texts), "dlq.Write: the collection holds pairs (KV<string,dlq.misfit>): make each a value with a method DeadLetter() dlq.Letter"},
		"a type unknown": {good, beam.CreateList(s, []stranger{{"a"}}), "dlq.Write: type dlq.stranger is not registered: call beam.RegisterType(reflect.TypeFor[dlq.stranger]()) in init"},
		"all of it":      {notedQueue{}, texts, "dlq.Write: notedQueue.Name: must be set\nthe collection holds string, which has no method DeadLetter() dlq.Letter"},
	} {
		if err := TryWrite(s, c.queue, c.col); err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
	if err := TryWrite(beam.Scope{}, good, misfits); err == nil || !strings.Contains(err.Error(), "the scope is not valid") {
		t.Errorf("error %v", err)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !strings.HasPrefix(err.Error(), "dlq.Write: ") {
			t.Errorf("Write panicked with %v", fmt.Sprint(err))
		}
	}()
	Write(s, nil, misfits)
}
