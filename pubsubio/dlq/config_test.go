package dlq

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func TestConfig_Validate(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Topic: testTopic}, ""},
		{Config{Topic: testTopic, MaxInFlightMessages: 1, FlushTimeout: time.Millisecond, ShutdownTimeout: time.Millisecond}, ""},
		{Config{Topic: testTopic, MaxInFlightMessages: WriteThrough}, ""},
		{Config{Topic: testTopic, MaxInFlightMessages: Unbounded}, ""},
		{Config{Topic: testTopic, EmulatorEndpoint: "localhost:1"}, ""},
		{Config{Topic: testTopic, Endpoint: "e:443", ServiceAccountKeyFile: "/key"}, ""},
		{Config{}, `dlq.Config.Topic: topic "": must have the form projects/<project>/topics/<id>`},
		{Config{Topic: "projects/p/topics/1st"}, `dlq.Config.Topic: topic "projects/p/topics/1st": the id must start with a letter`},
		{Config{Topic: testTopic, MaxInFlightMessages: -3}, "dlq.Config.MaxInFlightMessages: -3: must be positive, dlq.WriteThrough or dlq.Unbounded"},
		{Config{Topic: testTopic, FlushTimeout: time.Microsecond}, "dlq.Config.FlushTimeout: 1µs: must be at least 1ms: no wait is unbounded"},
		{Config{Topic: testTopic, FlushTimeout: options.Disabled}, "dlq.Config.FlushTimeout: -1ns: must be at least 1ms: no wait is unbounded"},
		{Config{Topic: testTopic, ShutdownTimeout: -time.Second}, "dlq.Config.ShutdownTimeout: -1s: must be at least 1ms"},
		{Config{Topic: testTopic, EmulatorEndpoint: "localhost"}, `dlq.Config.EmulatorEndpoint: "localhost": must be host:port`},
		{Config{Topic: testTopic, Endpoint: "e:443", EmulatorEndpoint: "localhost:1"}, `dlq.Config.Endpoint: "e:443": must be empty beside EmulatorEndpoint`},
		{Config{Topic: testTopic, ServiceAccountKeyFile: "/secret", EmulatorEndpoint: "localhost:1"}, "dlq.Config.ServiceAccountKeyFile: (set): must be empty beside EmulatorEndpoint, which takes no credentials"},
		{
			Config{MaxInFlightMessages: -9, FlushTimeout: -1},
			`dlq.Config.Topic: topic "": must have the form projects/<project>/topics/<id>` + "\n" +
				"dlq.Config.MaxInFlightMessages: -9: must be positive, dlq.WriteThrough or dlq.Unbounded\n" +
				"dlq.Config.FlushTimeout: -1ns: must be at least 1ms: no wait is unbounded",
		},
	} {
		got := ""
		if err := c.cfg.Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.cfg, got, c.want)
		}
	}
}

func TestConfig_TravelsAsJSON(t *testing.T) {
	cfg := Config{
		Topic: testTopic, MaxInFlightMessages: WriteThrough, FlushTimeout: time.Second, ShutdownTimeout: 2 * time.Second,
		ServiceAccountKeyFile: "/key", EmulatorEndpoint: "e:1", Endpoint: "r:2",
	}
	for _, q := range []Queue{cfg, &cfg} {
		e, err := EncodeQueue(q)
		if err != nil {
			t.Fatal(err)
		}
		there, err := DecodeQueue(e)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(q, there); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// What ends a wait is FlushTimeout; no option of the publisher's, which nobody has
// set, comes first.
func TestConfig_ThePoolFollowsTheOptions(t *testing.T) {
	cfg := Config{Topic: testTopic, FlushTimeout: 9 * time.Second, ShutdownTimeout: 3 * time.Second, EmulatorEndpoint: "e:1"}.withDefaults()
	p := cfg.pool("owner")
	got := p.Publisher
	if got.RetryTotalTimeout != options.Disabled || got.RetryMaxAttempts != 0 || got.PublishProgressTimeout != math.MaxInt64 ||
		got.RetryInitialRPCTimeout != 6*time.Second || got.MaxConsecutiveRejections != options.Unbounded {
		t.Errorf("the pool's bounds are %+v", got)
	}
	if got.MaxInFlightMessages != 1000 || got.ShutdownTimeout != 3*time.Second || p.Connection.EmulatorEndpoint != "e:1" || p.Disposition != options.CreateNever {
		t.Errorf("the pool is %+v", p)
	}
	if other := cfg.pool("another"); other.Nonce == p.Nonce || p.Nonce == "owner" {
		t.Errorf("pools are shared: %q, %q", p.Nonce, other.Nonce)
	}
	// A FlushTimeout of any length leaves settings that the pool can keep.
	for _, d := range []time.Duration{time.Millisecond, time.Second, time.Minute, 1000 * time.Hour} {
		cfg.FlushTimeout = d
		o := cfg.pool("owner").Publisher.WithDefaults()
		o.RetryMaxAttempts = 1 // Beside a disabled budget the rules ask for a bound; a bundle that waits is it.
		var f options.Faults
		o.Faults(&f)
		if err := f.Err(); err != nil {
			t.Errorf("FlushTimeout %v: %v", d, err)
		}
	}
}
