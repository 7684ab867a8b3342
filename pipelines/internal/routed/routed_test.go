package routed

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func TestMessage_SurvivesTheWayBetweenStages(t *testing.T) {
	m := Message{Topic: "projects/p/topics/t", Message: message.New([]byte("data")).WithAttribute("k", "v").WithOrderingKey("key")}
	got, err := unmarshal(marshal(m))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, b := range [][]byte{nil, {9}, {1, 'a', 0xff}} {
		if m, err := unmarshal(b); err == nil {
			t.Errorf("%v is read as %v", b, m)
		}
	}
}
