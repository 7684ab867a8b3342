package sink

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func unregistered(string) (*message.Message, error) { return nil, errors.New("never called") }

type method struct{}

func (method) encode(string) (*message.Message, error) { return nil, errors.New("never called") }

func TestTryWrite_ReportsEveryFaultAtOnce(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	cfg := Config{
		Topic:            "out",
		EmulatorEndpoint: "nowhere",
		Publisher:        options.Publisher{BatchElementCount: 1001, MaxInFlightMessages: -1},
	}
	_, err := TryWrite(s, cfg, unregistered, beam.Create(s, "a"))
	for _, want := range []string{
		"sink.Write: ",
		`sink.Config.Topic: topic "out": must have the form`,
		`sink.Config.EmulatorEndpoint: "nowhere": must be host:port`,
		"options.Publisher.BatchElementCount: 1001: must be 1 to 1000",
		"options.Publisher.MaxInFlightMessages: -1: must be at least 1",
		"sink.unregistered is not registered: call sink.RegisterEncoder with it in init",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("TryWrite: %v, want %q", err, want)
		}
	}
}

func TestTryWrite_RefusesWhatTheEncoderDoesNotTake(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	good := Config{Topic: topic}
	words := beam.Create(s, "a")
	for name, tc := range map[string]struct {
		write func() error
		want  string
	}{
		"another type": {func() error { _, err := TryWrite(s, good, Bytes, words); return err },
			"sink.Bytes takes []uint8, the collection holds string"},
		"pairs": {func() error { _, err := TryWrite(s, good, String, beam.AddFixedKey(s, words)); return err },
			"the collection holds pairs (KV<int,string>): make each a value that encoder"},
		"a closure": {func() error {
			_, err := TryWrite(s, good, func(string) (*message.Message, error) { return nil, nil }, words)
			return err
		}, "is a closure or a method value"},
		"a method value": {func() error { _, err := TryWrite(s, good, method{}.encode, words); return err },
			"is a closure or a method value"},
		"nil": {func() error { _, err := TryWrite(s, good, (EncodeFunc[string])(nil), words); return err },
			"the function is nil"},
		"no collection": {func() error { _, err := TryWrite(s, good, String, beam.PCollection{}); return err },
			"the collection is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.write(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("TryWrite: %v, want %q", err, tc.want)
			}
		})
	}
}

func TestWrite_PanicsWithTheError(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	defer func() {
		if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "sink.Config.Topic") {
			t.Errorf("panicked with %v", err)
		}
	}()
	Write(s, Config{}, String, beam.Create(s, "a"))
}

func TestRegisterEncoder_PanicsWithAClosure(t *testing.T) {
	defer func() {
		if text, ok := recover().(string); !ok || !strings.Contains(text, "sink.RegisterEncoder: ") {
			t.Errorf("panicked with %v", text)
		}
	}()
	RegisterEncoder(func(string) (*message.Message, error) { return nil, nil })
}

func generic[A, T any](T) (*message.Message, error) {
	var unused A
	return nil, fmt.Errorf("never called, %v", unused)
}

func init() {
	RegisterEncoder(generic[int, string])
	RegisterEncoder(generic[int, string]) // twice is harmless
	RegisterEncoder(generic[int, []byte])
}

// Instances of a generic function share their name: the last one registered was
// called for all.
func TestRegisterEncoder_PanicsWithAnotherFunctionOfTheSameName(t *testing.T) {
	defer func() {
		if text, ok := recover().(string); !ok || !strings.Contains(text, "another function is registered as ") {
			t.Errorf("panicked with %v", text)
		}
	}()
	RegisterEncoder(generic[bool, string])
}

// An instance that was not registered was served by another one, which has its
// name.
func TestTryWrite_RefusesAnotherInstanceOfARegisteredFunction(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	_, err := TryWrite(s, Config{Topic: topic, EmulatorEndpoint: "localhost:1"}, generic[bool, string], beam.Create(s, "a"))
	if err == nil || !strings.Contains(err.Error(), "is not the instance that is registered under this name") {
		t.Errorf("TryWrite: %v", err)
	}
}

// A registration in main works on a local runner, and on no other.
func TestSetup_NamesTheCallThatIsMissingOnTheWorker(t *testing.T) {
	fn := &writeFn{preparation: preparation{Encoder: "main.encode string"}}
	if err := fn.Setup(); err == nil || !strings.Contains(err.Error(), "call sink.RegisterEncoder with it in init, not in main") {
		t.Errorf("Setup: %v", err)
	}
}

// Two writes never share a pool, nor counters, whatever they have in common.
func TestWrite_HasANonceOfItsOwn(t *testing.T) {
	p, s := beam.NewPipelineWithRoot()
	words := beam.Create(s, "a")
	Write(s, Config{Topic: topic}, String, words)
	Write(s, Config{Topic: topic}, String, words)
	edges, _, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	nonces := make(map[string]bool)
	for _, edge := range edges {
		if edge.DoFn == nil {
			continue
		}
		if fn, ok := edge.DoFn.Recv.(interface{ StatsNonce() string }); ok {
			nonces[fn.StatsNonce()] = true
		}
	}
	if len(nonces) != 2 || nonces[""] {
		t.Errorf("nonces %v", nonces)
	}
}

func TestStartBundle_TellsWhatIsWrongWithTheCredentials(t *testing.T) {
	fn := &writeFn{preparation: preparation{Topic: topic, Encoder: keyOf(t, String)}}
	fn.Pool.Connection.ServiceAccountKeyFile = "/sekrit.json"
	if err := fn.Setup(); err != nil {
		t.Fatal(err)
	}
	err := fn.StartBundle(t.Context(), nil)
	if err == nil || !strings.HasPrefix(err.Error(), "sink: ") || strings.Contains(err.Error(), "sekrit") {
		t.Errorf("StartBundle: %v", err)
	}
}

func keyOf[T any](t *testing.T, encode EncodeFunc[T]) string {
	t.Helper()
	_, key, err := newEncoder(encode)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
