package source

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFailurePolicy_SurvivesTheWayToTheWorkers(t *testing.T) {
	for _, p := range []FailurePolicy{Fail(), Drop(), Nack(), Leave(), EmitFailed(), SendTo(fakeQueue{Name: "q"})} {
		b, err := json.Marshal(Config{OnDecodeFailure: p})
		if err != nil {
			t.Fatal(err)
		}
		var there Config
		if err := json.Unmarshal(b, &there); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, there.OnDecodeFailure, cmp.AllowUnexported(FailurePolicy{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p, diff)
		}
	}
}

func TestFailurePolicy_Faults(t *testing.T) {
	for name, c := range map[string]struct {
		policy FailurePolicy
		want   string
	}{
		"no queue":     {SendTo(nil), "source.Config.OnDecodeFailure: the dead-letter queue is nil"},
		"unregistered": {SendTo(unregisteredQueue{}), "source.Config.OnDecodeFailure: the dead-letter queue's type source.unregisteredQueue is not registered: call dlq.Register[source.unregisteredQueue]() in init"},
		"invalid":      {SendTo(fakeQueue{Name: "invalid"}), "source.Config.OnDecodeFailure: dead-letter queue: fakeQueue.Name: must be valid"},
		"unknown":      {FailurePolicy{kind: 9}, "source.Config.OnDecodeFailure: source.FailurePolicy(9): must be one of the policies of package source"},
	} {
		err := Config{Subscriptions: From(testSubscription), OnDecodeFailure: c.policy}.Validate()
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
}
