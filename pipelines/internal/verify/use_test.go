package verify

import "testing"

func TestUse_IsWhatTheFlagsAskFor(t *testing.T) {
	const name = "projects/p/subscriptions/checked"
	u, err := Use([]string{"--subscription=" + name, "--emulator_endpoint=h:1"})
	if err != nil || u.Fault != nil || u.Connection.EmulatorEndpoint != "h:1" || len(u.Sinks) > 0 || len(u.Sources) != 1 || u.Sources[0].Subscriptions[0].Name != name {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err = Use([]string{"--subscription=" + name, "--linger=-1s"}); err != nil || u.Fault == nil {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err = Use([]string{"--subscriptions=x"}); err == nil {
		t.Error("an unknown flag is read")
	}
}
