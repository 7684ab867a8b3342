package sink

import (
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

func TestPolicy_TellsItsQueue(t *testing.T) {
	queue := dlq.Config{Topic: deadTopic}
	if got := SendTo(queue).Queue(); got != queue {
		t.Errorf("%v", got)
	}
	if got := LogAndDrop().Queue(); got != nil {
		t.Errorf("%v", got)
	}
}
