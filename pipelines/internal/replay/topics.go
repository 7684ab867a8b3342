package replay

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

// topics knows which topics can be published to. A letter whose topic is gone is left:
// published to it, it would stop all others, for the sink takes a missing topic for one
// that may come.
type topics struct {
	connection options.Connection
	mu         sync.Mutex // held across a check, which the others wait for
	known      map[string]string
	silent     bool // the service has once not answered such a question
}

var destinationWords = strings.NewReplacer("sink.Config.Topic", "its destination")

// unusable says why nothing can be published to a topic, as far as the account may ask;
// "" where it can, or where the service does not say: the sink finds out, then, and nothing
// more is asked, for each question waits five seconds.
func (t *topics) unusable(ctx context.Context, topic string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	why, ok := t.known[topic]
	if ok || t.silent {
		return why
	}
	found, err := program.Check(ctx, program.Use{Sinks: []sink.Config{toTopic(t.connection, topic)}, Words: destinationWords})
	if absent := new(check.AbsentError); errors.As(err, &absent) || ctx.Err() != nil || err == nil && resource(found, topic).State == check.Unknown {
		t.silent = true
		return ""
	}
	if err != nil {
		why = err.Error()
	}
	if t.known == nil {
		t.known = make(map[string]string)
	}
	t.known[topic] = why
	return why
}
