package replay

import "testing"

func TestUse_IsWhatTheFlagsAskFor(t *testing.T) {
	args := []string{"--dead_letter_subscription=" + queueSub, "--emulator_endpoint=h:1"}
	u, err := Use(args)
	if err != nil || u.Fault != nil || u.Connection.EmulatorEndpoint != "h:1" || len(u.Sinks) > 0 || len(u.Sources) != 1 || u.Sources[0].Subscriptions[0].Name != queueSub {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err = Use(append(args, "--dead_letter_topic="+queueTopic, "--output_topic="+orders)); err != nil || u.Fault != nil || len(u.Sinks) != 2 || u.Sinks[1].Topic != orders {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err = Use(append(args, "--max_hops=0")); err != nil || u.Fault == nil {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err = Use(append(args, "--outputs=x")); err == nil {
		t.Error("an unknown flag is read")
	}
}
