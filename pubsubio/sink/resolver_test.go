package sink

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func init() {
	RegisterResolver(byFirstLetter)
	RegisterResolver(byItself)
	RegisterResolver(byHour)
}

// byFirstLetter has a topic for each first letter.
func byFirstLetter(word string, _ time.Time) (string, error) {
	return "projects/p/topics/for-" + word[:1], nil
}

// byItself takes the record for the topic; it fails at "secret-fail" and panics at
// "secret-panic".
func byItself(word string, _ time.Time) (string, error) {
	switch word {
	case "secret-fail":
		return "", errors.New("no topic for such a word")
	case "secret-panic":
		panic("no topic at all")
	}
	return word, nil
}

func byHour(_ int, at time.Time) (string, error) { return at.Format("projects/p/topics/at-15"), nil }

func unregisteredResolver(string, time.Time) (string, error) { return "", errors.New("never called") }

// withResolver returns a DoFn that resolves topics by that function.
func withResolver(t *testing.T, srv *pubsubtest.Server, r Resolver) *writeFn {
	t.Helper()
	pool := publish.Config{Nonce: t.Name(), Publisher: options.Publisher{BatchDelay: time.Hour}}
	pool.Connection.EmulatorEndpoint = srv.Endpoint()
	fn := &writeFn{preparation: preparation{Resolver: r.key, Encoder: keyOf(t, String)}, publication: publication{Pool: pool}}
	if err := fn.Setup(); err != nil {
		t.Fatal(err)
	}
	if err := fn.StartBundle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fn.Teardown(); err != nil {
			t.Error(err)
		}
	})
	return fn
}

func TestWrite_ResolvesATopicForEachRecord(t *testing.T) {
	srv := pubsubtest.New(t)
	for _, letter := range []string{"a", "b", "c"} {
		srv.MustCreateTopic("projects/p/topics/for-" + letter)
	}
	_, _, err := onPrism(t.Context(), func(s beam.Scope) {
		Write(s, Config{Resolve: ResolveWith(byFirstLetter), EmulatorEndpoint: srv.Endpoint()}, String, beam.Create(s, "a1", "b1", "a2", "c1", "c2"))
	})
	if err != nil {
		t.Fatal(err)
	}
	for letter, want := range map[string][]string{"a": {"a1", "a2"}, "b": {"b1"}, "c": {"c1", "c2"}} {
		var got []string
		for _, m := range srv.Messages("projects/p/topics/for-" + letter) {
			got = append(got, string(m.Data))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("published to %s: %v, want %v", letter, got, want)
		}
	}
}

// A fault of the resolver was taken for a bad record, and every record dropped.
func TestWriteFn_AResolversFaultFailsTheBundleWithoutItsContent(t *testing.T) {
	srv := server(t)
	name := "github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink.byItself"
	for record, want := range map[string]string{
		"":                                "sink: resolver " + name + " gave a record no topic: every record must have one",
		"secret":                          "sink: resolver " + name + " gave a record a malformed topic: must have the form projects/<project>/topics/<id>",
		"projects/secret/topics/1-secret": "sink: resolver " + name + " gave a record a malformed topic: the id must start with a letter",
		"projects/p/topics/goog-secret":   "sink: resolver " + name + " gave a record a malformed topic: the id must not start with goog",
		"projects/secret?/topics/abc":     "sink: resolver " + name + " gave a record a malformed topic: the project must be one or more of a-z A-Z 0-9 - . _ :",
		"secret-fail":                     "sink: resolver " + name + ": no topic for such a word",
		"secret-panic":                    "sink: resolver " + name + " panicked at resolver_test.go:",
	} {
		t.Run(record, func(t *testing.T) {
			fn := withResolver(t, srv, ResolveWith(byItself))
			fn.Failure.Kind = logAndDrop // has no say
			if err := fn.Setup(); err != nil {
				t.Fatal(err)
			}
			err := fn.ProcessElement(t.Context(), 0, record, nil)
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(strings.ReplaceAll(err.Error(), name, ""), "secret") {
				t.Errorf("ProcessElement: %v, want %s", err, want)
			}
		})
	}
}

func TestWriteFn_AResolverIsGivenTheEventTime(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic("projects/p/topics/at-17")
	topics, err := newTopics("", ResolveWith(byHour).key)
	if err != nil {
		t.Fatal(err)
	}
	at := beam.EventTime(time.Date(2026, 5, 4, 17, 59, 59, 0, time.UTC).UnixMilli())
	if got, err := topics.of(7, at); err != nil || got != "projects/p/topics/at-17" {
		t.Errorf("topic %q, error %v", got, err)
	}
}

// A name is checked once. The memory of names has a bound, and what is resolved
// stays right when it is reached.
func TestTopics_RemembersABoundedNumberOfNames(t *testing.T) {
	topics, err := newTopics("", ResolveWith(byItself).key)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		for i := range maxKnownTopics + 10 {
			name := fmt.Sprintf("projects/p/topics/topic-%d", i)
			if got, err := topics.of(name, 0); err != nil || got != name {
				t.Fatalf("round %d: topic %q, error %v, want %q", round, got, err, name)
			}
			if len(topics.known) > maxKnownTopics {
				t.Fatalf("%d names kept", len(topics.known))
			}
		}
	}
	var record any = "projects/p/topics/topic-1"
	if allocs := testing.AllocsPerRun(100, func() { _, _ = topics.of(record, 0) }); allocs != 0 {
		t.Errorf("%v allocations for a name that is known", allocs)
	}
}

func TestTryWrite_RefusesAResolverThatDoesNotFit(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	words := beam.Create(s, "a")
	for name, c := range map[string]struct {
		resolve Resolver
		want    string
	}{
		"unregistered": {ResolveWith(unregisteredResolver), "sink.Config.Resolve: resolver github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink.unregisteredResolver is not registered: call sink.RegisterResolver with it in init"},
		"closure":      {ResolveWith(func(string, time.Time) (string, error) { return "", nil }), "is a closure or a method value"},
		"nil":          {ResolveWith[string](nil), "sink.Config.Resolve: resolver the function is nil"},
		"another type": {ResolveWith(byHour), "resolver github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink.byHour takes int, the collection holds string"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := TryWrite(s, Config{Resolve: c.resolve}, String, words); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("TryWrite: %v, want %s", err, c.want)
			}
		})
	}
}

func TestRegisterResolver_PanicsWithAClosure(t *testing.T) {
	defer func() {
		if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "sink.RegisterResolver: ") {
			t.Errorf("panicked with %v", text)
		}
	}()
	RegisterResolver(func(string, time.Time) (string, error) { return "", nil })
}

func TestSetup_NamesTheResolverThatIsMissingOnTheWorker(t *testing.T) {
	fn := &writeFn{preparation: preparation{Encoder: keyOf(t, String), Resolver: "main.resolve string"}}
	if err := fn.Setup(); err == nil || !strings.Contains(err.Error(), "call sink.RegisterResolver with it in init, not in main") {
		t.Errorf("Setup: %v", err)
	}
}

func BenchmarkResolve(b *testing.B) {
	topics, err := newTopics("", ResolveWith(byItself).key)
	if err != nil {
		b.Fatal(err)
	}
	var records [100]any
	for i := range records {
		records[i] = fmt.Sprintf("projects/p/topics/topic-%d", i)
	}
	b.ReportAllocs()
	for i := range b.N {
		if _, err := topics.of(records[i%len(records)], 0); err != nil {
			b.Fatal(err)
		}
	}
}
