package loadgen

import "testing"

func TestUse_IsWhatTheFlagsAskFor(t *testing.T) {
	u, err := Use([]string{"--topic=" + topic, "--emulator_endpoint=h:1"})
	if err != nil || u.Fault != nil || u.Connection.EmulatorEndpoint != "h:1" || len(u.Sources) > 0 || len(u.Sinks) != 1 || u.Sinks[0].Topic != topic {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err = Use([]string{"--topic=" + topic, "--keys=0"}); err != nil || u.Fault == nil {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err = Use([]string{"--topics=x"}); err == nil {
		t.Error("an unknown flag is read")
	}
}
