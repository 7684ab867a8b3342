package source

import (
	"reflect"
	"time"
)

// A Timed is a record with an event time of its own. A decoder that emits Timed[T]
// is read into a collection of T, whose elements have these times:
//
//	func decodeOrder(m *message.Message, emit func(source.Timed[Order])) error {
//		var o Order
//		if err := json.Unmarshal(m.Data, &o); err != nil {
//			return errors.New("the order is no JSON")
//		}
//		emit(source.At(o.PlacedAt, o))
//		return nil
//	}
//
// Such a decoder excludes Config.TimestampAttribute. A time that is zero, or outside
// of Beam's range, is a decode failure: that record and the message's later ones are
// not emitted.
//
// Until a message is decoded nobody knows how old its records are. The watermark
// takes them for at most Config.WatermarkLag older than the message's publish time,
// and follows their own times from then on: so a read that never pauses is up to
// twice that lag behind, and records that are older than that may be late.
type Timed[T any] struct {
	Time   time.Time
	Record T
}

// At returns record with that event time.
func At[T any](t time.Time, record T) Timed[T] { return Timed[T]{Time: t, Record: record} }

// timedRecord is what every Timed is, whatever its record.
type timedRecord interface {
	recordType() reflect.Type
	// emitInto returns the func(Timed[T]) that emits into e. It is made where T is
	// known, so that no record passes through an interface of its own.
	emitInto(e *emitter) any
}

func (Timed[T]) recordType() reflect.Type { return reflect.TypeFor[T]() }

func (Timed[T]) emitInto(e *emitter) any {
	return func(r Timed[T]) { e.emitTimed(r.Time, r.Record) }
}

// asTimed returns what T is where it is a Timed, and no struct that embeds one.
func asTimed[T any]() (timedRecord, bool) {
	var zero T
	t, ok := any(zero).(timedRecord)
	if !ok || reflect.TypeFor[T]().Kind() != reflect.Struct {
		return nil, false
	}
	_, ok = t.emitInto(nil).(func(T))
	return t, ok
}

// recordOf returns the type of the records of a decoder that emits T, and whether
// they have times of their own.
func recordOf[T any]() (record reflect.Type, timed bool) {
	if t, ok := asTimed[T](); ok {
		return t.recordType(), true
	}
	return reflect.TypeFor[T](), false
}

// emitInto returns the emit of a decoder that emits T.
func emitInto[T any](e *emitter) func(T) {
	if t, ok := asTimed[T](); ok {
		return t.emitInto(e).(func(T))
	}
	return func(record T) { e.emit(record) }
}
