package relay

import (
	"strings"
	"testing"
)

func TestUse_IsWhatTheFlagsAskFor(t *testing.T) {
	u, err := Use([]string{
		"--input_subscriptions=" + inSub, "--output_topic=" + outTopic, "--dead_letter_topic=" + lettersName,
		"--emulator_endpoint=h:1",
	})
	if err != nil || u.Fault != nil || u.Help {
		t.Fatalf("%+v, %v", u, err)
	}
	if len(u.Sources) != 1 || u.Sources[0].Subscriptions[0].Name != inSub || u.Connection.EmulatorEndpoint != "h:1" {
		t.Errorf("sources %+v", u.Sources)
	}
	if len(u.Sinks) != 1 || u.Sinks[0].Topic != outTopic {
		t.Errorf("sinks %+v", u.Sinks)
	}
	u, err = Use([]string{"--input_subscriptions=" + inSub, "--output_topic=" + outTopic, "--output_topic_attribute=to"})
	if err != nil || u.Fault != nil || len(u.Sinks) != 2 || u.Sinks[0].Topic != "" || u.Sinks[1].Topic != outTopic {
		t.Errorf("by attribute: %+v, %v", u, err)
	}
	if u, err = Use([]string{"--embedded"}); err != nil || u.Fault != nil || len(u.Sources)+len(u.Sinks) > 0 {
		t.Errorf("embedded: %+v, %v", u, err)
	}
}

// What cannot be read is an error; what can and is wrong is a fault, in the flags'
// words.
func TestUse_TellsFaultsFromErrors(t *testing.T) {
	if _, err := Use([]string{"--output_topics=x"}); err == nil {
		t.Error("an unknown flag is read")
	}
	u, err := Use([]string{"--input_subscriptions=" + inSub, "--output_topic=out"})
	if err != nil || u.Fault == nil || !strings.HasPrefix(u.Fault.Error(), "--output_topic: ") {
		t.Errorf("%v, %v", u.Fault, err)
	}
}
