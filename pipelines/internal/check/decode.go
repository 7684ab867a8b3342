package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// A decoder reads JSON into configurations as people write them: durations and
// constants as texts. encoding/json would want nanoseconds and numbers, stop at the
// first fault, and take what a Config cannot say in JSON for nothing.
type decoder struct{ faults []error }

// fault notes what is wrong at a place, as "source.Subscriptions[0].Name".
func (d *decoder) fault(at, rule string, args ...any) {
	d.faults = append(d.faults, fmt.Errorf("%s: %s", at, fmt.Sprintf(rule, args...)))
}

// kindOf is the first character of a value that is well formed: it tells its kind.
func kindOf(raw json.RawMessage) byte {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 {
		return raw[0]
	}
	return 0
}

// read reads a value.
func (d *decoder) read(at string, raw json.RawMessage, v reflect.Value) {
	if d.readSpecial(at, raw, v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.readStruct(at, raw, v)
	case reflect.Slice:
		d.readSlice(at, raw, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.read(at, raw, v.Elem())
	case reflect.Int, reflect.Int64:
		d.readNumber(at, raw, v)
	case reflect.String:
		d.readPlain(at, raw, v, "a text")
	case reflect.Bool:
		d.readPlain(at, raw, v, "true or false")
	default:
		d.readPlain(at, raw, v, "a number")
	}
}

// readSpecial reads the types that have a form of their own, and reports whether v is of
// one.
func (d *decoder) readSpecial(at string, raw json.RawMessage, v reflect.Value) bool {
	switch to := v.Addr().Interface().(type) {
	case *time.Duration:
		d.readDuration(at, raw, to)
	case *options.Ordering:
		named(d, at, raw, to, map[string]options.Ordering{"Unordered": options.Unordered, "PerKey": options.PerKey})
	case *options.OrderBy:
		named(d, at, raw, to, map[string]options.OrderBy{"OrderInPlace": options.OrderInPlace, "OrderByKey": options.OrderByKey})
	case *options.CreateDisposition:
		named(d, at, raw, to, map[string]options.CreateDisposition{"CreateIfNeeded": options.CreateIfNeeded, "CreateNever": options.CreateNever})
	case *options.StartPosition:
		d.readPosition(at, raw, to)
	case *source.FailurePolicy:
		d.readPolicy(at, raw, func(q dlq.Config) { *to = source.SendTo(q) }, func(raw json.RawMessage, otherwise string) {
			namedOr(d, at, raw, to, map[string]source.FailurePolicy{
				"Fail": source.Fail(), "Drop": source.Drop(), "Nack": source.Nack(), "Leave": source.Leave(), "EmitFailed": source.EmitFailed(),
			}, otherwise)
		})
	case *sink.FailurePolicy:
		d.readPolicy(at, raw, func(q dlq.Config) { *to = sink.SendTo(q) }, func(raw json.RawMessage, otherwise string) {
			namedOr(d, at, raw, to, map[string]sink.FailurePolicy{
				"Fail": sink.Fail(), "LogAndDrop": sink.LogAndDrop(), "EmitFailed": sink.EmitFailed(),
			}, otherwise)
		})
	case *sink.Resolver:
		d.fault(at, "is a function of the program, which cannot be in a file: leave it out, and give the topics that are known as sinks with a Topic")
	case *source.Subscription:
		if kindOf(raw) != '"' {
			return false
		}
		d.readPlain(at, raw, reflect.ValueOf(&to.Name).Elem(), "a text")
	default:
		return false
	}
	return true
}

func (d *decoder) readStruct(at string, raw json.RawMessage, v reflect.Value) {
	members, again, err := object(raw)
	if err != nil || kindOf(raw) != '{' {
		d.fault(at, "must be an object")
		return
	}
	for _, name := range again {
		rule := "must be there once"
		if f := v.FieldByName(name); f.IsValid() && f.Kind() == reflect.Slice {
			rule += ", with all of them in its array"
		}
		d.fault(at+"."+name, "%s", rule)
	}
	var fields []string
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			fields = append(fields, f.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(fields, name) {
			d.fault(at+"."+name, "there is no such field in %v; there are %s", v.Type(), strings.Join(fields, ", "))
			continue
		}
		d.read(at+"."+name, members[name], v.FieldByName(name))
	}
}

func (d *decoder) readSlice(at string, raw json.RawMessage, v reflect.Value) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || kindOf(raw) != '[' {
		d.fault(at, "must be an array")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		d.read(fmt.Sprintf("%s[%d]", at, i), item, v.Index(i))
	}
}

// readPlain reads what encoding/json reads.
func (d *decoder) readPlain(at string, raw json.RawMessage, v reflect.Value, what string) {
	if kindOf(raw) == 'n' || json.Unmarshal(raw, v.Addr().Interface()) != nil {
		d.fault(at, "must be %s", what)
	}
}

// numbers are the constants that a field with a number may be.
var numbers = map[string]int64{"Unbounded": options.Unbounded, "Disabled": options.Disabled, "WriteThrough": dlq.WriteThrough}

func (d *decoder) readNumber(at string, raw json.RawMessage, v reflect.Value) {
	var name string
	if json.Unmarshal(raw, &name) != nil {
		d.readPlain(at, raw, v, "a whole number, or one of "+names(numbers)+" as a text")
		return
	}
	n, ok := numbers[name]
	if !ok {
		d.fault(at, "must be a whole number, or one of %s as a text", names(numbers))
	}
	v.SetInt(n)
}

func (d *decoder) readDuration(at string, raw json.RawMessage, to *time.Duration) {
	var text string
	err := json.Unmarshal(raw, &text)
	if err == nil && kindOf(raw) == '"' {
		if text == "Disabled" {
			*to = options.Disabled
			return
		}
		*to, err = time.ParseDuration(text)
	}
	if err != nil || kindOf(raw) != '"' {
		d.fault(at, `must be a duration as "90s" or "1h30m", or "Disabled"`)
	}
}

func (d *decoder) readPosition(at string, raw json.RawMessage, to *options.StartPosition) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		switch text {
		case "ContinueFromSubscription":
			*to = options.ContinueFromSubscription()
			return
		case "EarliestRetained":
			*to = options.EarliestRetained()
			return
		case "Latest":
			*to = options.Latest()
			return
		}
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			*to = options.FromTimestamp(t)
			return
		}
	}
	d.fault(at, `must be "ContinueFromSubscription", "EarliestRetained", "Latest" or a time as "2026-11-30T12:00:00Z"`)
}

// readPolicy reads a failure policy: a name, or SendTo with a queue over Pub/Sub.
func (d *decoder) readPolicy(at string, raw json.RawMessage, sendTo func(dlq.Config), byName func(raw json.RawMessage, otherwise string)) {
	const otherwise = `, or {"SendTo": {…}} with a dlq.Config; a function or a queue of another type cannot be in a file`
	if kindOf(raw) != '{' {
		byName(raw, otherwise)
		return
	}
	members, again, err := object(raw)
	for _, name := range again {
		d.fault(at+"."+name, "must be there once")
	}
	queue, ok := members["SendTo"]
	if err != nil || !ok || len(members) != 1 {
		byName(nil, otherwise)
		return
	}
	var q dlq.Config
	d.read(at+".SendTo", queue, reflect.ValueOf(&q).Elem())
	sendTo(q)
}

func named[T any](d *decoder, at string, raw json.RawMessage, to *T, values map[string]T) {
	namedOr(d, at, raw, to, values, "")
}

// namedOr reads one of several values by its name; otherwise ends the sentence of what
// may be there.
func namedOr[T any](d *decoder, at string, raw json.RawMessage, to *T, values map[string]T, otherwise string) {
	var name string
	err := json.Unmarshal(raw, &name)
	v, ok := values[name]
	if err != nil || !ok {
		d.fault(at, "must be one of %s as a text%s", names(values), otherwise)
		return
	}
	*to = v
}

func names[T any](values map[string]T) string {
	return strings.Join(slices.Sorted(maps.Keys(values)), ", ")
}
