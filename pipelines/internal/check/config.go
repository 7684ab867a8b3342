package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// readConfigs reads the configurations in a file. The error joins all that is wrong with
// its form; what is wrong with the configurations, Validate says.
func readConfigs(text []byte) (check.Configs, error) {
	var c check.Configs
	parts, again, err := object(text)
	if err != nil {
		return c, located(text, err)
	}
	var d decoder
	for _, name := range again {
		d.fault(name, "must be there once: for several, give an array of them")
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		switch raw := parts[name]; name {
		case "source":
			c.Sources = several[source.Config](&d, name, raw)
		case "sink":
			c.Sinks = several[sink.Config](&d, name, raw)
		case "dlq":
			c.Queues = several[dlq.Config](&d, name, raw)
		default:
			d.fault(name, `must be "source", "sink" or "dlq", each with a Config or an array of them`)
		}
	}
	if len(c.Sources)+len(c.Sinks)+len(c.Queues) == 0 && d.faults == nil {
		d.faults = append(d.faults, errors.New(`it holds no configuration: give at least one of "source", "sink" and "dlq"`))
	}
	return c, errors.Join(d.faults...)
}

// several reads a configuration, or an array of them.
func several[C any](d *decoder, at string, raw json.RawMessage) []C {
	if kindOf(raw) == '[' {
		var all []C
		d.read(at, raw, reflect.ValueOf(&all).Elem())
		return all
	}
	one := make([]C, 1)
	d.read(at, raw, reflect.ValueOf(&one[0]).Elem())
	return one
}

// object reads the members of a JSON object that is all of text. again are the names that
// it has more than once, sorted, of which members would hold the last alone.
func object(text []byte) (members map[string]json.RawMessage, again []string, err error) {
	from := json.NewDecoder(bytes.NewReader(text))
	if err := from.Decode(&members); err != nil {
		return nil, nil, err
	}
	if _, err := from.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, &json.SyntaxError{Offset: from.InputOffset()}
	}
	return members, repeated(text), nil
}

// repeated are the names that an object, which is well formed, has more than once.
func repeated(text []byte) []string {
	from := json.NewDecoder(bytes.NewReader(text))
	var again []string
	seen := make(map[string]bool)
	for start, _ := from.Token(); start != nil && from.More(); {
		name, err := from.Token()
		var value json.RawMessage
		if err = errors.Join(err, from.Decode(&value)); err != nil {
			break // Decode has said so before.
		}
		if text, _ := name.(string); seen[text] {
			again = append(again, text)
		} else {
			seen[text] = true
		}
	}
	slices.Sort(again)
	return slices.Compact(again)
}

// located says where in text a fault of its form is.
func located(text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	at, what := len(text), "it ends too early"
	switch {
	case errors.As(err, &syntax) && syntax.Error() == "":
		at, what = int(syntax.Offset), "there is more behind the object"
	case errors.As(err, &syntax):
		at, what = int(syntax.Offset), syntax.Error()
	case errors.As(err, &kind):
		at, what = int(kind.Offset), "must be an object, it is "+kind.Value
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	}
	before := text[:min(max(at, 0), len(text))]
	line := 1 + bytes.Count(before, []byte("\n"))
	return fmt.Errorf("line %d, column %d: no JSON object: %s", line, len(before)-bytes.LastIndexByte(before, '\n')-1, what)
}

// connect gives the configurations that say nothing of their connection the one of the
// flags.
func connect(u *program.Use, c options.Connection) {
	set := func(emulator, endpoint, key *string) {
		if *emulator == "" && *endpoint == "" && *key == "" {
			*emulator, *endpoint, *key = c.EmulatorEndpoint, c.Endpoint, c.ServiceAccountKeyFile
		}
	}
	queue := func(q *dlq.Config) { set(&q.EmulatorEndpoint, &q.Endpoint, &q.ServiceAccountKeyFile) }
	for i := range u.Sources {
		s := &u.Sources[i]
		set(&s.EmulatorEndpoint, &s.Endpoint, &s.ServiceAccountKeyFile)
		if q, ok := s.OnDecodeFailure.Queue().(dlq.Config); ok {
			queue(&q)
			s.OnDecodeFailure = source.SendTo(q)
		}
	}
	for i := range u.Sinks {
		s := &u.Sinks[i]
		set(&s.EmulatorEndpoint, &s.Endpoint, &s.ServiceAccountKeyFile)
		if q, ok := s.OnFailure.Queue().(dlq.Config); ok {
			queue(&q)
			s.OnFailure = sink.SendTo(q)
		}
	}
	for i := range u.Queues {
		queue(&u.Queues[i])
	}
}
