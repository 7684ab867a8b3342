package source

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/byname"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func splitWords(m *message.Message, emit func(string)) error {
	for _, w := range strings.Fields(string(m.Data)) {
		emit(w)
	}
	return nil
}

func notRegistered(*message.Message, func(string)) error { return errors.New("never called") }

func init() { RegisterDecoder(splitWords) }

func TestDecoder_IsFoundByNameAndCalledWithoutReflection(t *testing.T) {
	name, err := byname.Key(splitWords, reflect.TypeFor[string]())
	if err != nil {
		t.Fatal(err)
	}
	d, ok := decoders.Find(name)
	if !ok {
		t.Fatalf("%s is not found", name)
	}
	var got []any
	e := newEmitter(d, func(_ beam.EventTime, v beam.X) { got = append(got, v) })
	if err := e.run(&message.Message{Data: []byte("a b c")}, 0); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[2] != "c" || d.record.Kind().String() != "string" {
		t.Errorf("decoded into %v of %v", got, d.record)
	}
}

func TestTryRead_RefusesADecoderThatWorkersCannotFind(t *testing.T) {
	cfg := Config{Subscriptions: From(testSubscription)}
	_, s := beam.NewPipelineWithRoot()
	for name, c := range map[string]struct {
		decode DecodeFunc[string]
		want   string
	}{
		"unregistered": {notRegistered, "call source.RegisterDecoder with it in init"},
		"closure":      {func(*message.Message, func(string)) error { return nil }, "closure"},
		"nil":          {nil, "nil"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := TryRead(s, cfg, c.decode); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestRegisterDecoder_PanicsOnAClosure(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "package level") {
			t.Errorf("recovered %v", r)
		}
	}()
	RegisterDecoder(func(*message.Message, func(int)) error { return nil })
}

func TestRead_PanicsWithTheFaults(t *testing.T) {
	defer func() {
		if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "source.Read") || !strings.Contains(err.Error(), "at least one subscription") {
			t.Errorf("recovered %v", err)
		}
	}()
	_, s := beam.NewPipelineWithRoot()
	Read(s, Config{}, Bytes)
}

func TestTryRead_GivesTheRecordsTheirType(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	words, err := TryRead(s, Config{Subscriptions: From(testSubscription)}, splitWords)
	if err != nil {
		t.Fatal(err)
	}
	if got := words.Type().Type().String(); got != "string" {
		t.Errorf("the collection holds %s", got)
	}
}

func BenchmarkDecode(b *testing.B) {
	name, _ := byname.Key(Message, reflect.TypeFor[*message.Message]())
	d, _ := decoders.Find(name)
	e := newEmitter(d, func(beam.EventTime, beam.X) {})
	m := new(message.Message)
	b.ReportAllocs()
	for b.Loop() {
		_ = e.run(m, 0)
	}
}
