package source

import (
	"cmp"
	"errors"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/panics"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// An emitter decodes messages, one at a time, and emits their records. It tells
// three things apart that a decoder may mix up: its own failure, which is the
// message's; that of an emission, which is a later step's and fails the bundle
// whatever the decoder makes of it; and a time that no record can have.
type emitter struct {
	name   string // of the decoder
	timed  bool
	decode boundDecoder
	out    func(beam.EventTime, beam.X)

	at       beam.EventTime // of the message being decoded
	decoding bool
	fault    error     // of a record of the message being decoded
	broken   any       // what an emission panicked with: a later step has failed
	told     time.Time // the watermark that was reported
	oldest   time.Time // of the records that came with a time, and are not late
}

var errEmittedAfterwards = errors.New("source: a decoder called emit after it had returned: what it emits belongs to no message; call emit during the call only, and on its goroutine")

func newEmitter(d registration, out func(beam.EventTime, beam.X)) *emitter {
	e := &emitter{name: d.name, timed: d.timed, out: out}
	e.decode = d.bind(e)
	return e
}

// run decodes m, whose event time is at. It returns a decode failure, and panics as
// a later step did.
func (e *emitter) run(m *message.Message, at beam.EventTime) error {
	e.at, e.fault, e.decoding = at, nil, true
	err := e.call(m)
	e.decoding = false
	if e.broken != nil {
		panic(e.broken) //nolint:forbidigo // Beam knows its own panic, and which step it came from
	}
	return cmp.Or(e.fault, err)
}

func (e *emitter) call(m *message.Message) (err error) {
	defer panics.Recover(&err, "decoder", e.name)
	return e.decode(m)
}

// emit emits a record with the time of its message.
func (e *emitter) emit(record any) { e.emitAt(e.at, record) }

// emitTimed emits a record with its own time.
func (e *emitter) emitTimed(t time.Time, record any) {
	switch {
	case e.fault != nil:
	case t.IsZero():
		e.fault = errRecordWithoutTime
	case !inBeam(t):
		e.fault = errRecordOutOfRange
	default:
		if !t.Before(e.told) {
			e.oldest = earlier(e.oldest, t)
		}
		e.emitAt(mtime.FromTime(t), record)
	}
}

func (e *emitter) emitAt(at beam.EventTime, record any) {
	if !e.decoding {
		panic(errEmittedAfterwards) //nolint:forbidigo // there is nobody to return it to
	}
	if e.broken != nil {
		panic(e.broken) //nolint:forbidigo // the decoder goes on although the later step has failed
	}
	defer e.keepPanic()
	e.out(at, record)
}

// keepPanic is to be deferred around an emission. It keeps the panic, which goes on,
// in case that the decoder recovers it.
func (e *emitter) keepPanic() {
	if r := recover(); r != nil {
		e.broken = r
		panic(r) //nolint:forbidigo // as it was
	}
}

// takeOldest returns the earliest time that a record came with since the last call,
// zero where none did.
func (e *emitter) takeOldest() time.Time {
	oldest := e.oldest
	e.oldest = time.Time{}
	return oldest
}
