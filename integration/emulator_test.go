package integration

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// outSub is where the emulator is asked what has arrived.
const outSub = "projects/integration/subscriptions/output"

// relayOnEmulator relays what another client has published and checks that
// everything arrived once and nothing is left.
func relayOnEmulator(t *testing.T, n int, limit options.Limit) {
	t.Helper()
	endpoint := emulator.Start(t)
	client := emulator.Dial(t, endpoint)
	client.CreateTopic(inTopic)
	client.CreateTopic(outTopic)
	client.CreateSubscription(inSub, inTopic)
	client.CreateSubscription(outSub, outTopic)
	messages := make([]*pubsubpb.PubsubMessage, n)
	for i := range messages {
		messages[i] = &pubsubpb.PubsubMessage{Data: fmt.Appendf(nil, "%07d", i), Attributes: map[string]string{
			"sequence": fmt.Sprint(i),
			// What the service adds on delivery and takes from nobody.
			"googclient_schemaencoding": "JSON",
		}}
	}
	client.Publish(inTopic, messages...)
	began := time.Now()
	must(t, relayAt(endpoint, limit).run(within(t, 2*time.Minute)))
	t.Logf("%d messages in %v", n, time.Since(began).Round(time.Millisecond))
	if left := client.Drain(inSub); len(left) != 0 {
		t.Errorf("%d messages are left in the subscription", len(left))
	}
	arrived := make(map[string]int)
	for _, m := range client.Drain(outSub) {
		arrived[string(m.GetData())]++
		if want := map[string]string{"sequence": m.GetAttributes()["sequence"]}; !maps.Equal(m.GetAttributes(), want) {
			t.Errorf("attributes %v", m.GetAttributes())
		}
	}
	for d, times := range arrived {
		if times != 1 {
			t.Errorf("%s arrived %d times", d, times)
		}
	}
	if len(arrived) != n {
		t.Errorf("%d messages arrived of %d", len(arrived), n)
	}
}

func TestPrism_RelaysTwentyThousandOnTheEmulator(t *testing.T) {
	long(t)
	parallel(t)
	relayOnEmulator(t, 20_000, options.Limit{MaxMessages: 20_000})
}

func TestDirect_RelaysAThousandOnTheEmulator(t *testing.T) {
	long(t)
	onRunner(t, "direct")
	relayOnEmulator(t, 1000, options.Limit{MaxMessages: 1000})
}

// Several splits with several streams each share a subscription, and what the decoder
// refuses is dropped, or returned until the dead-letter policy has it.
func TestPrism_SplitsStreamsAndPoliciesOnTheEmulator(t *testing.T) {
	const n = 500
	for _, policy := range []source.FailurePolicy{source.Drop(), source.Nack()} {
		t.Run(policy.String(), func(t *testing.T) {
			endpoint := emulator.Start(t)
			client := emulator.Dial(t, endpoint)
			client.CreateTopic(inTopic)
			client.CreateTopic(outTopic)
			client.CreateSubscription(outSub, outTopic) // of the dead letters
			client.CreateSubscription(inSub, inTopic, func(s *pubsubpb.Subscription) {
				s.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: outTopic, MaxDeliveryAttempts: 5}
			})
			var messages []*pubsubpb.PubsubMessage
			for i := range n {
				messages = append(messages, &pubsubpb.PubsubMessage{Data: fmt.Appendf(nil, "%d", i)})
			}
			client.Publish(inTopic, messages...)
			cfg := relayAt(endpoint, options.Limit{StopWhenIdle: stretched(5 * time.Second)}).source
			cfg.Splits, cfg.Subscriber.Streams, cfg.OnDecodeFailure = 2, 2, policy
			if policy.String() == source.Nack().String() {
				cfg.NackDelay = options.Disabled
			}
			p, s := beam.NewPipelineWithRoot()
			pr := new(probe)
			beam.ParDo0(s, drop, pr.apply(s, source.Read(s, cfg, decodePoison)))
			must(t, runPipeline(within(t, time.Minute), p))
			if left := client.Drain(inSub); len(left) != 0 {
				t.Errorf("%d messages are left", len(left))
			}
			// A refused message was emitted before it was refused, each time that it came.
			if passed := pr.passed.Load(); passed < n {
				t.Errorf("%d of %d were read", passed, n)
			}
			c := pubsubio.CountsOf(p)
			switch letters := len(client.Drain(outSub)); policy.String() {
			case source.Drop().String():
				if c.MessagesDropped != n/10 || letters != 0 {
					t.Errorf("%d dropped, %d dead letters", c.MessagesDropped, letters)
				}
			default:
				if letters != n/10 {
					t.Errorf("%d dead letters of %d; %+v", letters, n/10, c)
				}
			}
		})
	}
}
