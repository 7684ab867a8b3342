package relay

import (
	"fmt"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

// Against a server that is not ours, and messages that another client published.
func TestEmulator_RelaysEveryMessageOnce(t *testing.T) {
	endpoint := emulator.Start(t)
	client := emulator.Dial(t, endpoint)
	for runner, n := range map[string]int{"prism": 20_000, "direct": 1_000} {
		t.Run(runner, func(t *testing.T) {
			in, out := "projects/p/topics/in-"+runner, "projects/p/topics/out-"+runner
			from, check := "projects/p/subscriptions/in-"+runner, "projects/p/subscriptions/out-"+runner
			client.CreateTopic(in)
			client.CreateTopic(out)
			client.CreateSubscription(from, in)
			client.CreateSubscription(check, out)
			msgs := make([]*pubsubpb.PubsubMessage, n)
			for i := range msgs {
				msgs[i] = &pubsubpb.PubsubMessage{Data: fmt.Append(nil, i), Attributes: map[string]string{"runner": runner}}
			}
			client.Publish(in, msgs...)

			o := runRelay(t.Context(), t, "--runner="+runner, "--emulator_endpoint="+endpoint,
				"--input_subscriptions="+from, "--output_topic="+out, fmt.Sprint("--max_messages=", n))
			o.MustEnd(t, program.ExitDone)

			if o.Report.Acknowledged != int64(n) || o.Report.Redelivered != 0 {
				t.Errorf("report %+v, want %d acknowledged", o.Report, n)
			}
			if left := client.Drain(from); len(left) != 0 {
				t.Errorf("%d messages are left on the subscription", len(left))
			}
			seen := make(map[string]int)
			for _, m := range client.Drain(check) {
				seen[string(m.GetData())]++
			}
			copies := 0
			for _, times := range seen {
				copies += times
			}
			if len(seen) != n || copies != n {
				t.Errorf("%d messages arrived, %d of them distinct, want %d", copies, len(seen), n)
			}
		})
	}
}
