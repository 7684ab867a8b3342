package source

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// emitterOf returns an emitter of a decoder that is not registered.
func emitterOf[T any](decode DecodeFunc[T], out func(beam.EventTime, beam.X)) *emitter {
	return newEmitter(registrationOf(decode), out)
}

// What a later step does is not the message's fault, and the decoder must not be able
// to hide it: the step's records would be gone, and the message acknowledged.
func TestEmitter_AFailedEmissionFailsTheBundleWhateverTheDecoderMakesOfIt(t *testing.T) {
	laterStep := errors.New("a later step has failed")
	for name, decode := range map[string]DecodeFunc[string]{
		"lets it pass": func(_ *message.Message, emit func(string)) error {
			emit("a")
			return nil
		},
		"recovers it": func(_ *message.Message, emit func(string)) error {
			defer func() { _ = recover() }()
			emit("a")
			return nil
		},
		"makes it an error": func(_ *message.Message, emit func(string)) (err error) {
			defer func() { err = fmt.Errorf("cannot decode: %v", recover()) }()
			emit("a")
			return nil
		},
		"panics otherwise": func(_ *message.Message, emit func(string)) error {
			defer func() { panic(fmt.Sprint("decoder: ", recover())) }()
			emit("a")
			return nil
		},
		"goes on": func(_ *message.Message, emit func(string)) error {
			for range 2 {
				func() {
					defer func() { _ = recover() }()
					emit("a")
				}()
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			e := emitterOf(decode, func(beam.EventTime, beam.X) {
				calls++
				panic(laterStep)
			})
			defer func() {
				if got := recover(); got != laterStep { //nolint:errorlint // the very value
					t.Errorf("the bundle ends with %v", got)
				}
				if calls != 1 {
					t.Errorf("%d records went to a step that had failed", calls)
				}
			}()
			t.Errorf("the message is decoded, error %v", e.run(new(message.Message), 0))
		})
	}
}

func TestEmitter_ADecoderThatPanicsHasRefusedTheMessage(t *testing.T) {
	var got []any
	e := emitterOf(func(m *message.Message, emit func(string)) error {
		emit(m.ID)
		if m.ID == "bad" {
			panic("no such word")
		}
		return nil
	}, func(_ beam.EventTime, v beam.X) { got = append(got, v) })
	err := e.run(&message.Message{ID: "bad"}, 0)
	if err == nil || !strings.Contains(err.Error(), "panicked at emitter_test.go:") || !strings.Contains(err.Error(), "no such word") {
		t.Errorf("error %v", err)
	}
	if err := e.run(&message.Message{ID: "good"}, 0); err != nil {
		t.Errorf("the next message: %v", err)
	}
	if want := []any{"bad", "good"}; !reflect.DeepEqual(got, want) {
		t.Errorf("emitted %v, want %v: what came before the failure stays", got, want)
	}
}

func TestEmitter_EmittingAfterTheCallIsRefused(t *testing.T) {
	var kept func(string)
	e := emitterOf(func(_ *message.Message, emit func(string)) error {
		kept = emit
		return nil
	}, func(beam.EventTime, beam.X) { t.Error("it was emitted") })
	if err := e.run(new(message.Message), 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, errEmittedAfterwards) {
			t.Errorf("recovered %v", err)
		}
	}()
	kept("too late")
}

func TestEmitter_TimedRecordsHaveTheirOwnTimes(t *testing.T) {
	old, older := time.UnixMilli(5000), time.UnixMilli(3000)
	got := make(map[any]beam.EventTime)
	e := emitterOf(func(_ *message.Message, emit func(Timed[string])) error {
		emit(At(old, "a"))
		emit(At(older, "b"))
		return nil
	}, func(at beam.EventTime, v beam.X) { got[v] = at })
	if err := e.run(new(message.Message), 9000); err != nil {
		t.Fatal(err)
	}
	if want := map[any]beam.EventTime{"a": 5000, "b": 3000}; !reflect.DeepEqual(got, want) {
		t.Errorf("emitted at %v, want %v", got, want)
	}
	if first, second := e.takeOldest(), e.takeOldest(); !first.Equal(older) || !second.IsZero() {
		t.Errorf("the oldest is %v, then %v", first, second)
	}
}

// A time that a Beam element cannot have was cut to one that it can.
func TestEmitter_ATimeOutOfRangeIsADecodeFailure(t *testing.T) {
	for name, c := range map[string]struct {
		at   time.Time
		want error
	}{
		"none":      {time.Time{}, errRecordWithoutTime},
		"too early": {mtime.MinTimestamp.ToTime().Add(-time.Millisecond), errRecordOutOfRange},
		"too late":  {mtime.EndOfGlobalWindowTime.ToTime().Add(time.Millisecond), errRecordOutOfRange},
		"least":     {mtime.MinTimestamp.ToTime(), nil},
		"greatest":  {mtime.EndOfGlobalWindowTime.ToTime(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []any
			e := emitterOf(func(_ *message.Message, emit func(Timed[string])) error {
				emit(At(time.UnixMilli(1), "before"))
				emit(At(c.at, "it"))
				emit(At(time.UnixMilli(1), "after"))
				return nil
			}, func(_ beam.EventTime, v beam.X) { got = append(got, v) })
			if err := e.run(new(message.Message), 0); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			want := []any{"before"}
			if c.want == nil {
				want = []any{"before", "it", "after"}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("emitted %v, want %v", got, want)
			}
		})
	}
}

// embedding has the methods of a Timed and is none.
type embedding struct {
	Timed[string]
	More int
}

func TestRecordOf_OnlyTimedIsTimed(t *testing.T) {
	if record, timed := recordOf[Timed[string]](); record != reflect.TypeFor[string]() || !timed {
		t.Errorf("Timed[string]: %v, %v", record, timed)
	}
	if record, timed := recordOf[embedding](); record != reflect.TypeFor[embedding]() || timed {
		t.Errorf("embedding: %v, %v", record, timed)
	}
	if record, timed := recordOf[*Timed[string]](); record != reflect.TypeFor[*Timed[string]]() || timed {
		t.Errorf("*Timed[string]: %v, %v", record, timed)
	}
	if record, timed := recordOf[any](); record != reflect.TypeFor[any]() || timed {
		t.Errorf("any: %v, %v", record, timed)
	}
}

func emitTwice(m *message.Message, emit func(Timed[*message.Message])) error {
	emit(At(m.PublishTime, m))
	emit(At(m.PublishTime, m))
	return nil
}

func BenchmarkEmitTimed(b *testing.B) {
	e := emitterOf(emitTwice, func(beam.EventTime, beam.X) {})
	m := &message.Message{PublishTime: time.Unix(1, 0)}
	b.ReportAllocs()
	for b.Loop() {
		_ = e.run(m, 0)
	}
}
