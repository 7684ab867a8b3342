package source

import (
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

func TestPolicy_TellsItsQueue(t *testing.T) {
	queue := dlq.Config{Topic: deadTopic}
	if got := SendTo(queue).Queue(); got != queue {
		t.Errorf("%v", got)
	}
	if got := Nack().Queue(); got != nil {
		t.Errorf("%v", got)
	}
}

func TestSubscription_TellsWhetherItIsThePipelinesOwn(t *testing.T) {
	own := FromTopic("p", "projects/p/topics/orders")[0]
	renamed := own
	renamed.Name = subA
	if !own.Own() || renamed.Own() || From(subA)[0].Own() {
		t.Error(own.Own(), renamed.Own(), From(subA)[0].Own())
	}
}
