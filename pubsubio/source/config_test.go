package source

import (
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func TestConfig_ReportsEveryFaultAtOnce(t *testing.T) {
	err := Config{
		Subscriptions:      From("projects/p/subscriptions/input", "orders", "projects/p/subscriptions/input"),
		Splits:             -1,
		WatermarkLag:       time.Microsecond,
		EmulatorEndpoint:   "localhost",
		Endpoint:           "europe-west1-pubsub.googleapis.com:443",
		Limit:              options.Limit{MaxMessages: -5},
		Subscriber:         options.Subscriber{MaxExtension: time.Millisecond},
		WatermarkHoldLimit: -time.Second,
	}.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	const want = `source.Config.Subscriptions[1]: subscription "orders": must have the form projects/<project>/subscriptions/<id>
source.Config.Subscriptions[2]: "projects/p/subscriptions/input": must not be named twice: its messages are shared between the two, not doubled; use Splits to read it in parallel
source.Config.Splits: -1: must be at least 1
source.Config.WatermarkLag: 1µs: must be at least 1ms
source.Config.WatermarkHoldLimit: -1s: must be at least 1ms
source.Config.EmulatorEndpoint: "localhost": must be host:port
source.Config.Endpoint: "europe-west1-pubsub.googleapis.com:443": must be empty beside EmulatorEndpoint
options.Subscriber.MaxExtension: 1ms: must be at least 1s or options.Disabled
options.Subscriber.MaxExtension: 1ms: must not be under MaxBundleDuration (1s), or leases lapse within a bundle
options.Limit.MaxMessages: -5: must be at least 0`
	if got := err.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestConfig_AtLeastOneSubscription(t *testing.T) {
	if err := (Config{}).Validate(); err == nil || !strings.Contains(err.Error(), "at least one subscription") {
		t.Errorf("error %v", err)
	}
}

func TestConfig_MaxMessagesNeedsOneSplit(t *testing.T) {
	err := Config{Subscriptions: From("projects/p/subscriptions/input"), Splits: 2, Limit: options.Limit{MaxMessages: 1}}.Validate()
	if err == nil || !strings.Contains(err.Error(), "source.Config.Splits: 2: must be 1 beside Limit.MaxMessages") {
		t.Errorf("error %v", err)
	}
}

func TestConfig_IDAttributeNeedsOneSplit(t *testing.T) {
	err := Config{Subscriptions: From("projects/p/subscriptions/input"), Splits: 2, IDAttribute: "id"}.Validate()
	if err == nil || err.Error() != "source.Config.Splits: 2: must be 1 beside IDAttribute: the copies of a message may come to any of them" {
		t.Errorf("error %v", err)
	}
}

func TestConfig_PerKeyNeedsOneStream(t *testing.T) {
	cfg := Config{Subscriptions: From("projects/p/subscriptions/input"), Ordering: options.PerKey, Subscriber: options.Subscriber{Streams: 2}}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "options.Subscriber.Streams: 2: must be 1 beside Ordering options.PerKey") {
		t.Errorf("error %v", err)
	}
	cfg.Subscriber.Streams = 1
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfig_DecodeFaults(t *testing.T) {
	for want, adjust := range map[string]func(*Config){
		"source.Config.NackDelay: 500ms: must be whole seconds from 1s to 600s, or options.Disabled":                                                   func(c *Config) { c.NackDelay = 500 * time.Millisecond },
		"source.Config.NackDelay: 1.5s: must be whole seconds from 1s to 600s, or options.Disabled":                                                    func(c *Config) { c.NackDelay = 1500 * time.Millisecond },
		"source.Config.NackDelay: 10m1s: must be whole seconds from 1s to 600s, or options.Disabled":                                                   func(c *Config) { c.NackDelay = 601 * time.Second },
		"source.Config.NackDelay: -1s: must be whole seconds from 1s to 600s, or options.Disabled":                                                     func(c *Config) { c.NackDelay = -time.Second },
		"source.Config.NackDelay: 1s: must be unset beside OnDecodeFailure source.Drop(), which has no use for it":                                     func(c *Config) { c.NackDelay, c.OnDecodeFailure = time.Second, Drop() },
		`source.Config.TimestampAttribute: "\xc5": must be a key that a message can have: valid UTF-8 of at most 256 bytes`:                            func(c *Config) { c.TimestampAttribute = "\xc5" },
		`source.Config.TimestampAttribute: "` + strings.Repeat("k", 40) + `": must be a key that a message can have: valid UTF-8 of at most 256 bytes`: func(c *Config) { c.TimestampAttribute = strings.Repeat("k", 257) },
	} {
		c := Config{Subscriptions: From(testSubscription), OnDecodeFailure: Nack()}
		adjust(&c)
		if err := c.Validate(); err == nil || err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}
	for _, d := range []time.Duration{0, options.Disabled, time.Second, 600 * time.Second} {
		c := Config{Subscriptions: From(testSubscription), OnDecodeFailure: Nack(), NackDelay: d}
		if err := c.Validate(); err != nil {
			t.Errorf("NackDelay %v: %v", d, err)
		}
	}
}

// What cannot be decoded would come again for ever, as its own dead letter.
func TestConfig_ASubscriptionToCreateIsNotOfTheDeadLetterTopic(t *testing.T) {
	cfg := Config{
		Subscriptions:   []Subscription{{Name: testSubscription, Create: &options.SubscriptionCreate{Topic: deadTopic}}},
		OnDecodeFailure: SendTo(dlq.Config{Topic: deadTopic}),
	}
	const want = `source.Config.Subscriptions[0].Create.Topic: "projects/q/topics/dead": must be another topic than that of the dead-letter queue of OnDecodeFailure, or what cannot be decoded comes again for ever, as its own dead letter`
	if err := cfg.Validate(); err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	cfg.Subscriptions[0].Create.Topic = aTopic
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.OnDecodeFailure = SendTo((*dlq.Config)(nil))
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "the dead-letter queue is a nil *dlq.Config") {
		t.Errorf("error %v", err)
	}
}
