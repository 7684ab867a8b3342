package options

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPublisher_Faults(t *testing.T) {
	for _, c := range []struct {
		options Publisher
		want    string
	}{
		{Publisher{BatchElementCount: -1}, "options.Publisher.BatchElementCount: -1: must be 1 to 1000"},
		{Publisher{BatchElementCount: 1001}, "options.Publisher.BatchElementCount: 1001: must be 1 to 1000"},
		{Publisher{BatchBytes: -1}, "options.Publisher.BatchBytes: -1: must be 1 to 10000000"},
		{Publisher{BatchBytes: 10_000_001}, "options.Publisher.BatchBytes: 10000001: must be 1 to 10000000"},
		{Publisher{BatchBytes: 2000, MaxInFlightBytes: 1000}, "options.Publisher.BatchBytes: 2000: must not be above MaxInFlightBytes (1000)"},
		{Publisher{BatchDelay: time.Microsecond}, "options.Publisher.BatchDelay: 1µs: must be at least 1ms"},
		{Publisher{BatchDelay: Disabled}, "options.Publisher.BatchDelay: -1ns: must be at least 1ms"},
		{Publisher{RetryTotalTimeout: time.Microsecond}, "options.Publisher.RetryTotalTimeout: 1µs: must be at least 1ms or options.Disabled"},
		{Publisher{RetryTotalTimeout: Disabled}, "options.Publisher.RetryMaxAttempts: 0: must be positive beside RetryTotalTimeout = options.Disabled, or nothing bounds the retries"},
		{Publisher{RetryTotalTimeout: Disabled, RetryMaxAttempts: 3}, ""},
		{Publisher{RetryTotalTimeout: Disabled, RetryMaxAttempts: 3, RetryInitialRPCTimeout: Disabled}, "options.Publisher.RetryInitialRPCTimeout: options.Disabled: must be positive beside RetryTotalTimeout = options.Disabled, or a request that is never answered holds its bundle for ever"},
		{Publisher{RetryInitialRPCTimeout: Disabled}, ""},
		{Publisher{BatchDelay: time.Minute, PublishProgressTimeout: time.Minute}, "options.Publisher.BatchDelay: 1m0s: must be under PublishProgressTimeout (1m0s), or waiting for a batch to fill is a stall"},
		{Publisher{MaxInFlightBytes: 500_000}, ""},
		{Publisher{RetryInitialDelay: -time.Second}, "options.Publisher.RetryInitialDelay: -1s: must be at least 1ms or options.Disabled"},
		{Publisher{RetryInitialDelay: Disabled}, ""},
		{Publisher{RetryDelayMultiplier: 1001}, "options.Publisher.RetryDelayMultiplier: 1001: must be 1 to 1000"},
		{Publisher{RetryDelayMultiplier: math.NaN()}, "options.Publisher.RetryDelayMultiplier: NaN: must be 1 to 1000"},
		{Publisher{RetryRPCTimeoutMultiplier: math.Inf(1)}, "options.Publisher.RetryRPCTimeoutMultiplier: +Inf: must be 1 to 1000"},
		{Publisher{RetryMaxDelay: 25 * time.Hour}, "options.Publisher.RetryMaxDelay: 25h0m0s: must be at most 24h0m0s"},
		{Publisher{RetryInitialDelay: time.Minute, RetryMaxDelay: time.Second}, "options.Publisher.RetryMaxDelay: 1s: must not be under RetryInitialDelay (1m0s)"},
		{Publisher{RetryInitialDelay: 2 * time.Minute}, ""},
		{Publisher{RetryMaxDelay: 5 * time.Millisecond, RecoveryMaxBackoff: 5 * time.Millisecond}, ""},
		{Publisher{RetryDelayMultiplier: 0.5}, "options.Publisher.RetryDelayMultiplier: 0.5: must be 1 to 1000"},
		{Publisher{RetryMaxDelay: time.Nanosecond}, "options.Publisher.RetryMaxDelay: 1ns: must be at least 1ms or options.Disabled"},
		{Publisher{RetryMaxAttempts: -1}, "options.Publisher.RetryMaxAttempts: -1: must be at least 0"},
		{Publisher{RetryTotalTimeout: -2}, "options.Publisher.RetryTotalTimeout: -2ns: must be at least 1ms or options.Disabled"},
		{Publisher{RetryInitialDelay: time.Microsecond}, "options.Publisher.RetryInitialDelay: 1µs: must be at least 1ms or options.Disabled"},
		{Publisher{RetryDelayMultiplier: -1}, "options.Publisher.RetryDelayMultiplier: -1: must be 1 to 1000"},
		{Publisher{RetryDelayMultiplier: 1}, ""},
		{Publisher{RetryMaxDelay: -time.Second}, "options.Publisher.RetryMaxDelay: -1s: must be at least 1ms or options.Disabled"},
		{Publisher{RetryMaxDelay: Disabled}, ""},
		{Publisher{RetryInitialRPCTimeout: time.Nanosecond}, "options.Publisher.RetryInitialRPCTimeout: 1ns: must be at least 1ms or options.Disabled"},
		{Publisher{RetryInitialRPCTimeout: -time.Second}, "options.Publisher.RetryInitialRPCTimeout: -1s: must be at least 1ms or options.Disabled"},
		{Publisher{RetryInitialRPCTimeout: 2 * time.Minute}, ""},
		{Publisher{RetryRPCTimeoutMultiplier: 0.9}, "options.Publisher.RetryRPCTimeoutMultiplier: 0.9: must be 1 to 1000"},
		{Publisher{RetryRPCTimeoutMultiplier: -1}, "options.Publisher.RetryRPCTimeoutMultiplier: -1: must be 1 to 1000"},
		{Publisher{RetryRPCTimeoutMultiplier: 1.5}, ""},
		{Publisher{RetryMaxRPCTimeout: time.Nanosecond}, "options.Publisher.RetryMaxRPCTimeout: 1ns: must be at least 1ms or options.Disabled"},
		{Publisher{RetryMaxRPCTimeout: -time.Second}, "options.Publisher.RetryMaxRPCTimeout: -1s: must be at least 1ms or options.Disabled"},
		{Publisher{RetryMaxRPCTimeout: time.Second}, "options.Publisher.RetryMaxRPCTimeout: 1s: must not be under RetryInitialRPCTimeout (1m0s)"},
		{Publisher{RetryMaxRPCTimeout: Disabled}, ""},
		{Publisher{RetryTotalTimeout: Disabled, RetryMaxAttempts: 3, RetryMaxRPCTimeout: Disabled}, "options.Publisher.RetryMaxRPCTimeout: options.Disabled: must be positive beside RetryTotalTimeout = options.Disabled, or a request that is never answered holds its bundle for ever"},
		{Publisher{EnableMessageOrdering: true}, ""},
		{Publisher{EnableMessageOrdering: true, RetryTotalTimeout: time.Minute}, "options.Publisher.RetryTotalTimeout: 1m0s: must be unset beside EnableMessageOrdering: an ordered publish is retried until it is answered, PublishProgressTimeout bounds an outage"},
		{Publisher{EnableMessageOrdering: true, RetryTotalTimeout: Disabled}, "options.Publisher.RetryTotalTimeout: options.Disabled: must be unset beside EnableMessageOrdering: an ordered publish is retried until it is answered, PublishProgressTimeout bounds an outage"},
		{Publisher{EnableMessageOrdering: true, RetryInitialRPCTimeout: Disabled}, "options.Publisher.RetryInitialRPCTimeout: options.Disabled: must be positive beside EnableMessageOrdering, or a request that is never answered holds its ordering key for ever"},
		{Publisher{EnableMessageOrdering: true, RetryMaxRPCTimeout: Disabled}, "options.Publisher.RetryMaxRPCTimeout: options.Disabled: must be positive beside EnableMessageOrdering, or a request that is never answered holds its ordering key for ever"},
		{Publisher{EnableMessageOrdering: true, RetryMaxAttempts: 3}, "options.Publisher.RetryMaxAttempts: 3: must be unset beside EnableMessageOrdering: an ordered publish is retried until it is answered, PublishProgressTimeout bounds an outage"},
		{Publisher{MaxActivePublishers: -1}, "options.Publisher.MaxActivePublishers: -1: must be at least 1"},
		{Publisher{DestinationIdleTimeout: time.Microsecond}, "options.Publisher.DestinationIdleTimeout: 1µs: must be at least 1ms"},
		{Publisher{DestinationIdleTimeout: Disabled}, "options.Publisher.DestinationIdleTimeout: -1ns: must be at least 1ms"},
		{Publisher{RecoveryInitialBackoff: time.Microsecond}, "options.Publisher.RecoveryInitialBackoff: 1µs: must be at least 1ms"},
		{Publisher{RecoveryInitialBackoff: Disabled}, "options.Publisher.RecoveryInitialBackoff: -1ns: must be at least 1ms"},
		{Publisher{RecoveryInitialBackoff: time.Minute}, ""},
		{Publisher{RecoveryMaxBackoff: time.Microsecond}, "options.Publisher.RecoveryMaxBackoff: 1µs: must be at least 1ms"},
		{Publisher{RecoveryMaxBackoff: -time.Second}, "options.Publisher.RecoveryMaxBackoff: -1s: must be at least 1ms"},
		{Publisher{RecoveryInitialBackoff: time.Second, RecoveryMaxBackoff: 100 * time.Millisecond}, "options.Publisher.RecoveryMaxBackoff: 100ms: must not be under RecoveryInitialBackoff (1s)"},
		{Publisher{RecoveryMaxAttempts: -1}, "options.Publisher.RecoveryMaxAttempts: -1: must be at least 1"},
		{Publisher{MaxConsecutiveRejections: -2}, "options.Publisher.MaxConsecutiveRejections: -2: must be positive or options.Unbounded"},
		{Publisher{MaxConsecutiveRejections: Unbounded}, ""},
		{Publisher{PerDestinationMetrics: true}, ""},
		{Publisher{Compression: -1}, "options.Publisher.Compression: -1: must be at least 0"},
		{Publisher{Compression: 1}, ""},
		{Publisher{MaxInFlightMessages: -1}, "options.Publisher.MaxInFlightMessages: -1: must be at least 1"},
		{Publisher{MaxInFlightBytes: -5}, "options.Publisher.MaxInFlightBytes: -5: must be positive or options.Unbounded"},
		{Publisher{MaxInFlightBytes: Unbounded}, ""},
		{Publisher{PublishProgressTimeout: -time.Second}, "options.Publisher.PublishProgressTimeout: -1s: must be at least 1ms"},
		{Publisher{PublishProgressTimeout: time.Microsecond, BatchDelay: time.Millisecond}, "options.Publisher.BatchDelay: 1ms: must be under PublishProgressTimeout (1µs), or waiting for a batch to fill is a stall\noptions.Publisher.PublishProgressTimeout: 1µs: must be at least 1ms"},
		{Publisher{ShutdownTimeout: time.Nanosecond}, "options.Publisher.ShutdownTimeout: 1ns: must be at least 1ms"},
		{Publisher{ShutdownTimeout: Disabled}, "options.Publisher.ShutdownTimeout: -1ns: must be at least 1ms"},
	} {
		if got := faultsOf(c.options.Faults); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.options, got, c.want)
		}
	}
}

// A user who set nothing but the cap was told to change BatchBytes.
func TestPublisher_BatchBytesDefaultsToNoMoreThanTheCap(t *testing.T) {
	for in, want := range map[Publisher]int{
		{}:                            1_000_000,
		{MaxInFlightBytes: 500_000}:   500_000,
		{MaxInFlightBytes: Unbounded}: 1_000_000,
		{MaxInFlightBytes: 500_000, BatchBytes: 400_000}: 400_000,
		{MaxInFlightBytes: 5_000_000}:                    1_000_000,
		{MaxInFlightBytes: -5}:                           1_000_000,
	} {
		if got := in.WithDefaults().BatchBytes; got != want {
			t.Errorf("%+v has BatchBytes %d, want %d", in, got, want)
		}
	}
}

// A default that another setting would make a fault follows that setting.
func TestPublisher_CapsDefaultToNoLessThanTheirFirstValue(t *testing.T) {
	p := Publisher{RetryInitialRPCTimeout: 2 * time.Minute, RecoveryInitialBackoff: time.Minute}.WithDefaults()
	if p.RetryMaxRPCTimeout != 2*time.Minute || p.RecoveryMaxBackoff != time.Minute {
		t.Errorf("RetryMaxRPCTimeout %v, RecoveryMaxBackoff %v", p.RetryMaxRPCTimeout, p.RecoveryMaxBackoff)
	}
}

// Every default of options.Publisher is documented with its field.
func TestPublisher_WithDefaults(t *testing.T) {
	want := Publisher{
		BatchElementCount: 100, BatchBytes: 1_000_000, BatchDelay: 10 * time.Millisecond,
		RetryTotalTimeout: 600 * time.Second, RetryInitialDelay: 100 * time.Millisecond, RetryDelayMultiplier: 4, RetryMaxDelay: 60 * time.Second,
		RetryInitialRPCTimeout: 60 * time.Second, RetryRPCTimeoutMultiplier: 1, RetryMaxRPCTimeout: 60 * time.Second,
		MaxInFlightMessages: 1000, MaxInFlightBytes: 64 << 20, MaxActivePublishers: 100, DestinationIdleTimeout: time.Hour,
		PublishProgressTimeout: 600 * time.Second,
		RecoveryInitialBackoff: 500 * time.Millisecond, RecoveryMaxBackoff: 10 * time.Second, RecoveryMaxAttempts: 10,
		MaxConsecutiveRejections: 100, ShutdownTimeout: 30 * time.Second,
	}
	if diff := cmp.Diff(want, Publisher{}.WithDefaults()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, want.WithDefaults()); diff != "" {
		t.Errorf("defaults changed what was set (-want +got):\n%s", diff)
	}
}
