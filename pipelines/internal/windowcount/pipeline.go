package windowcount

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/window"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/transforms/stats"
	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() {
	register.DoFn1x1[*message.Message, string](&labelFn{})
	register.DoFn2x2[beam.Window, string, string, error](&admitFn{})
	register.DoFn4x1[beam.Window, string, int, func(*message.Message), error](&countedFn{})
	register.Emitter1[*message.Message]()
}

// labelFn gives a message its label.
type labelFn struct {
	Attribute string // the ordering key if empty
}

// ProcessElement returns the label.
func (fn *labelFn) ProcessElement(m *message.Message) string {
	if fn.Attribute == "" {
		return m.OrderingKey
	}
	return m.Attributes[fn.Attribute]
}

// boards are those that exist, by nonce: Beam makes DoFns anew from their JSON, in this
// process.
var boards sync.Map

func boardOf(nonce string) (*board, error) {
	b, ok := boards.Load(nonce)
	if !ok {
		return nil, fmt.Errorf("windowcount: no board %s in this process", nonce)
	}
	return b.(*board), nil
}

// admitFn tells a board of each message in each of its windows: what it is told of and
// is never counted came late.
type admitFn struct{ Nonce string }

// ProcessElement passes on what it gets.
func (fn *admitFn) ProcessElement(_ beam.Window, label string) (string, error) {
	b, err := boardOf(fn.Nonce)
	if err == nil {
		b.admit()
	}
	return label, err
}

// countedFn puts a count on a board, and makes a message of it.
type countedFn struct {
	Nonce, By string
}

// A countMessage is what is published.
type countMessage struct {
	Start instant `json:"window_start"`
	End   instant `json:"window_end"`
	By    string  `json:"by"`
	Label string  `json:"label"`
	Count int     `json:"count"`
}

// ProcessElement is called with what a window counts of a label, again for late ones.
func (fn *countedFn) ProcessElement(w beam.Window, label string, n int, emit func(*message.Message)) error {
	b, err := boardOf(fn.Nonce)
	if err != nil {
		return err
	}
	interval, ok := w.(window.IntervalWindow)
	if !ok {
		return fmt.Errorf("windowcount: a window of type %T", w)
	}
	at := span{interval.Start.ToTime().UTC(), interval.End.ToTime().UTC()}
	b.add(at, label, int64(n))
	data, err := json.Marshal(countMessage{Start: instant{at.start}, End: instant{at.end}, By: fn.By, Label: label, Count: n})
	if err != nil {
		return err
	}
	emit(message.New(data))
	return nil
}

func sourceConfig(s settings) source.Config {
	return source.Config{
		Subscriptions:         source.From(s.subscriptions...),
		Limit:                 s.limit,
		TimestampAttribute:    s.timestampAttribute,
		OnDecodeFailure:       s.onBadTimestamp(),
		WatermarkLag:          s.watermarkLag,
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
	}
}

func sinkConfig(s settings) sink.Config {
	return sink.Config{
		Topic: s.output,
		// A mistyped --output_topic must not become a topic that nobody reads.
		CreateDisposition:     options.CreateNever,
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
	}
}

// build adds the pipeline to scope; b is told what it counts, until forget.
func build(scope beam.Scope, s settings, b *board) (forget func(), err error) {
	nonce := uuid.NewString()
	messages, err := read(scope, s)
	if err != nil {
		return nil, err
	}
	labels := beam.ParDo(scope, &labelFn{Attribute: s.attribute}, messages)
	windowed := beam.WindowInto(scope, s.windowFn(), labels, s.latePanes()...)
	admitted := beam.ParDo(scope, &admitFn{Nonce: nonce}, windowed)
	counted := beam.ParDo(scope, &countedFn{Nonce: nonce, By: s.by()}, stats.Count(scope, admitted))
	if s.output != "" {
		if _, err := sink.TryWrite(scope, sinkConfig(s), sink.Message, counted); err != nil {
			return nil, err
		}
	} else {
		beam.ParDo0(scope, discard, counted)
	}
	boards.Store(nonce, b)
	return func() { boards.Delete(nonce) }, nil
}

func (s settings) windowFn() *window.Fn {
	if s.every != 0 {
		return window.NewSlidingWindows(s.every, s.window)
	}
	return window.NewFixedWindows(s.window)
}

// latePanes are the options of the windows. Beam's default trigger counts a window when
// the watermark passes its end, and again for each late message that is allowed.
func (s settings) latePanes() []beam.WindowIntoOption {
	switch s.late {
	case lateAccumulate:
		return []beam.WindowIntoOption{beam.AllowedLateness(s.lateness), beam.PanesAccumulate()}
	case lateDiscard:
		return []beam.WindowIntoOption{beam.AllowedLateness(s.lateness), beam.PanesDiscard()}
	}
	return nil
}

func init() { register.Function1x0(discard) }

// discard ends a pipeline that publishes nothing.
func discard(*message.Message) {}
