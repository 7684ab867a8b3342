package options

import (
	"strings"
	"testing"
	"time"
)

func TestSubscriptionCreate_Faults(t *testing.T) {
	const day = 24 * time.Hour
	policy := func(attempts int) SubscriptionCreate {
		return SubscriptionCreate{DeadLetterPolicy: &DeadLetterPolicy{MaxDeliveryAttempts: attempts}}
	}
	for _, c := range []struct {
		options SubscriptionCreate
		want    string
	}{
		{SubscriptionCreate{}, ""},
		{SubscriptionCreate{AckDeadline: 10 * time.Second}, ""},
		{SubscriptionCreate{AckDeadline: 600 * time.Second}, ""},
		{SubscriptionCreate{AckDeadline: 9 * time.Second}, "c.AckDeadline: 9s: must be whole seconds, 10s to 10m0s"},
		{SubscriptionCreate{AckDeadline: 601 * time.Second}, "c.AckDeadline: 10m1s: must be whole seconds, 10s to 10m0s"},
		{SubscriptionCreate{AckDeadline: 10500 * time.Millisecond}, "c.AckDeadline: 10.5s: must be whole seconds, 10s to 10m0s"},
		{SubscriptionCreate{AckDeadline: Disabled}, "c.AckDeadline: -1ns: must be whole seconds, 10s to 10m0s"},
		{SubscriptionCreate{MessageRetention: 10 * time.Minute}, ""},
		{SubscriptionCreate{MessageRetention: 31 * day}, ""},
		{SubscriptionCreate{MessageRetention: 10*time.Minute - 1}, "c.MessageRetention: 9m59.999999999s: must be 10m0s to 744h0m0s"},
		{SubscriptionCreate{MessageRetention: 31*day + 1}, "c.MessageRetention: 744h0m0.000000001s: must be 10m0s to 744h0m0s"},
		{SubscriptionCreate{ExpirationTTL: day}, ""},
		{SubscriptionCreate{ExpirationTTL: 10 * 365 * day}, ""},
		{SubscriptionCreate{ExpirationTTL: day - 1}, "c.ExpirationTTL: 23h59m59.999999999s: must be at least 24h0m0s; NeverExpire is for a subscription that stays"},
		{SubscriptionCreate{ExpirationTTL: Unbounded}, "c.ExpirationTTL: -1ns: must be at least 24h0m0s; NeverExpire is for a subscription that stays"},
		{SubscriptionCreate{NeverExpire: true}, ""},
		{SubscriptionCreate{ExpirationTTL: 2 * day, NeverExpire: true}, "c.ExpirationTTL: 48h0m0s: must be unset beside NeverExpire"},
		{policy(0), ""},
		{policy(5), ""},
		{policy(100), ""},
		{policy(4), "c.DeadLetterPolicy.MaxDeliveryAttempts: 4: must be 5 to 100"},
		{policy(101), "c.DeadLetterPolicy.MaxDeliveryAttempts: 101: must be 5 to 100"},
		{policy(-1), "c.DeadLetterPolicy.MaxDeliveryAttempts: -1: must be 5 to 100"},
		{SubscriptionCreate{EnableMessageOrdering: true, RetainAckedMessages: true}, ""},
		{SubscriptionCreate{Filter: strings.Repeat("ä", 128)}, ""},
		{SubscriptionCreate{Filter: strings.Repeat("ä", 128) + "b"}, "c.Filter: (257 bytes): must have at most 256 bytes"},
		{SubscriptionCreate{Filter: "a\xc5z"}, `c.Filter: "a\xc5z": must be valid UTF-8`},
	} {
		if got := faultsOf(func(f *Faults) { c.options.Faults(f, "c") }); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.options, got, c.want)
		}
	}
}

func TestSubscriptionCreate_ReportsEveryFaultAtOnce(t *testing.T) {
	got := faultsOf(func(f *Faults) {
		SubscriptionCreate{
			AckDeadline: 1, MessageRetention: 1, ExpirationTTL: 1, NeverExpire: true,
			DeadLetterPolicy: &DeadLetterPolicy{MaxDeliveryAttempts: 1}, Filter: "\xff",
		}.Faults(f, "c")
	})
	const want = `c.AckDeadline: 1ns: must be whole seconds, 10s to 10m0s
c.MessageRetention: 1ns: must be 10m0s to 744h0m0s
c.ExpirationTTL: 1ns: must be at least 24h0m0s; NeverExpire is for a subscription that stays
c.ExpirationTTL: 1ns: must be unset beside NeverExpire
c.DeadLetterPolicy.MaxDeliveryAttempts: 1: must be 5 to 100
c.Filter: "\xff": must be valid UTF-8`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
