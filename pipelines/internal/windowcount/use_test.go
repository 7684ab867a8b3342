package windowcount

import "testing"

func TestUse_IsWhatTheFlagsAskFor(t *testing.T) {
	args := []string{"--input_subscriptions=" + sub, "--by_ordering_key", "--emulator_endpoint=h:1"}
	u, err := Use(args)
	if err != nil || u.Fault != nil || u.Connection.EmulatorEndpoint != "h:1" || len(u.Sinks) > 0 || len(u.Sources) != 1 || u.Sources[0].Subscriptions[0].Name != sub {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err = Use(append(args, "--output_topic="+outTopic)); err != nil || len(u.Sinks) != 1 || u.Sinks[0].Topic != outTopic {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err = Use(append(args, "--late=never")); err != nil || u.Fault == nil {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err = Use(append(args, "--outputs=x")); err == nil {
		t.Error("an unknown flag is read")
	}
}
