package routed

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func TestEncode_AMessageWithoutATopicFails(t *testing.T) {
	if m, err := Encode(Message{Topic: None, Message: message.New(nil), Fault: "no topic"}); m != nil || err == nil || err.Error() != "no topic" {
		t.Errorf("%v, %v", m, err)
	}
	if _, err := message.ParseTopic(None); err != nil {
		t.Error(err)
	}
}

func TestMessage_SurvivesTheWayBetweenStages(t *testing.T) {
	m := Message{Topic: "projects/p/topics/t", Message: message.New([]byte("data")).WithAttribute("k", "v").WithOrderingKey("key"), Fault: "why"}
	got, err := unmarshal(marshal(m))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, b := range [][]byte{nil, {9}, {1, 'a', 9}, {1, 'a', 0, 0xff}} {
		if m, err := unmarshal(b); err == nil {
			t.Errorf("%v is read as %v", b, m)
		}
	}
}
