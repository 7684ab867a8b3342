package options

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// faultsOf returns what a struct's Faults recorded.
func faultsOf(record func(*Faults)) string {
	var f Faults
	record(&f)
	if err := f.Err(); err != nil {
		return err.Error()
	}
	return ""
}

func TestZeroValuesAreValid(t *testing.T) {
	for name, record := range map[string]func(*Faults){
		"Publisher":         Publisher{}.Faults,
		"TopicCreate":       TopicCreate{}.Faults,
		"CreateDisposition": func(f *Faults) { CreateIfNeeded.Faults(f, "x") },
		"OrderBy":           func(f *Faults) { OrderInPlace.Faults(f, "x") },
		"Subscriber":        Subscriber{}.Faults,
		"Limit":             Limit{}.Faults,
		"Connection":        func(f *Faults) { Connection{}.Faults(f, "x") },
		"StartPosition":     func(f *Faults) { StartPosition{}.Faults(f, "x") },
	} {
		if got := faultsOf(record); got != "" {
			t.Errorf("the zero %s: %s", name, got)
		}
	}
}

func TestSubscriber_Faults(t *testing.T) {
	for _, c := range []struct {
		options Subscriber
		want    string
	}{
		{Subscriber{MaxOutstandingMessages: -1}, "options.Subscriber.MaxOutstandingMessages: -1: must be at least 1"},
		{Subscriber{MaxOutstandingBytes: -1}, "options.Subscriber.MaxOutstandingBytes: -1: must be at least 1"},
		{Subscriber{BufferMaxMessages: -1}, "options.Subscriber.BufferMaxMessages: -1: must be at least 1"},
		{Subscriber{BufferMaxBytes: -1}, "options.Subscriber.BufferMaxBytes: -1: must be at least 1"},
		{Subscriber{MaxExtension: time.Millisecond, MaxBundleDuration: time.Millisecond}, "options.Subscriber.MaxExtension: 1ms: must be at least 1s or options.Disabled"},
		{Subscriber{MaxExtension: Disabled}, ""},
		{Subscriber{MinExtensionPeriod: 9 * time.Second}, "options.Subscriber.MinExtensionPeriod: 9s: must be from 10s to 600s, in whole seconds"},
		{Subscriber{MinExtensionPeriod: -1}, "options.Subscriber.MinExtensionPeriod: -1ns: must be from 10s to 600s, in whole seconds"},
		{Subscriber{MaxExtensionPeriod: 601 * time.Second}, "options.Subscriber.MaxExtensionPeriod: 10m1s: must be from 10s to 600s, in whole seconds"},
		{Subscriber{MaxExtensionPeriod: 10500 * time.Millisecond}, "options.Subscriber.MaxExtensionPeriod: 10.5s: must be from 10s to 600s, in whole seconds"},
		{Subscriber{MinExtensionPeriod: time.Minute, MaxExtensionPeriod: 30 * time.Second}, "options.Subscriber.MinExtensionPeriod: 1m0s: must not be above MaxExtensionPeriod (30s)"},
		{Subscriber{MinExtensionPeriod: 30 * time.Second, MaxExtensionPeriod: 30 * time.Second}, ""},
		{Subscriber{MaxExtension: time.Minute, MaxBundleDuration: time.Hour}, "options.Subscriber.MaxExtension: 1m0s: must not be under MaxBundleDuration (1h0m0s), or leases lapse within a bundle"},
		{Subscriber{PausedBufferMaxMessages: -1}, "options.Subscriber.PausedBufferMaxMessages: -1: must be at least 1"},
		{Subscriber{PausedBufferMaxBytes: -1}, "options.Subscriber.PausedBufferMaxBytes: -1: must be at least 1"},
		{Subscriber{PausedBufferMaxMessages: 50_001}, "options.Subscriber.PausedBufferMaxMessages: 50001: must not be above MaxOutstandingMessages (50000): flow control would stop the streams before a paused split holds so much"},
		{Subscriber{MaxOutstandingBytes: 10, PausedBufferMaxBytes: 11}, "options.Subscriber.PausedBufferMaxBytes: 11: must not be above MaxOutstandingBytes (10): flow control would stop the streams before a paused split holds so much"},
		{Subscriber{Streams: -1}, "options.Subscriber.Streams: -1: must be from 1 to 90"},
		{Subscriber{Streams: 91}, "options.Subscriber.Streams: 91: must be from 1 to 90"},
		{Subscriber{Streams: 3, MaxOutstandingMessages: 2}, "options.Subscriber.Streams: 3: must not be above MaxOutstandingMessages (2), of which each stream has its part"},
		{Subscriber{Streams: 3, MaxOutstandingBytes: 2}, "options.Subscriber.Streams: 3: must not be above MaxOutstandingBytes (2), of which each stream has its part"},
		{Subscriber{MaxOutstandingMessages: 1, MaxOutstandingBytes: 1}, ""},
		{Subscriber{MaxRecordsPerBundle: -1}, "options.Subscriber.MaxRecordsPerBundle: -1: must be at least 1"},
		{Subscriber{MaxBundleBytes: -1}, "options.Subscriber.MaxBundleBytes: -1: must be at least 1"},
		{Subscriber{BundleFillDelay: time.Minute}, "options.Subscriber.BundleFillDelay: 1m0s: must not be above MaxBundleDuration (1s)"},
		{Subscriber{BundleFillDelay: time.Microsecond}, "options.Subscriber.BundleFillDelay: 1µs: must be at least 1ms or options.Disabled"},
		{Subscriber{MaxBundleDuration: time.Microsecond}, "options.Subscriber.MaxBundleDuration: 1µs: must be at least 1ms"},
		{Subscriber{FirstCommitTimeout: time.Millisecond}, "options.Subscriber.FirstCommitTimeout: 1ms: must be at least 1s or options.Disabled"},
		{Subscriber{FirstCommitTimeout: Disabled}, ""},
		{Subscriber{ShutdownTimeout: time.Nanosecond}, "options.Subscriber.ShutdownTimeout: 1ns: must be at least 1ms"},
	} {
		if got := faultsOf(c.options.Faults); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.options, got, c.want)
		}
	}
}

func TestSubscriber_PausedBufferIsHalfOfWhatIsOutstanding(t *testing.T) {
	s := Subscriber{MaxOutstandingMessages: 7, MaxOutstandingBytes: 900}.WithDefaults()
	if s.PausedBufferMaxMessages != 3 || s.PausedBufferMaxBytes != 450 {
		t.Errorf("%d messages and %d bytes", s.PausedBufferMaxMessages, s.PausedBufferMaxBytes)
	}
	if s := (Subscriber{MaxOutstandingMessages: 1}).WithDefaults(); s.PausedBufferMaxMessages != 1 {
		t.Errorf("half of one message is %d", s.PausedBufferMaxMessages)
	}
}

func TestLimit_Faults(t *testing.T) {
	got := faultsOf(Limit{MaxMessages: -1, MaxDuration: -1, StopWhenIdle: time.Microsecond}.Faults)
	const want = `options.Limit.MaxMessages: -1: must be at least 0
options.Limit.MaxDuration: -1ns: must be at least 1ms
options.Limit.StopWhenIdle: 1µs: must be at least 1ms`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestConnection_Faults(t *testing.T) {
	for value, ok := range map[string]bool{
		"localhost:8085": true, "[::1]:8085": true, "": true,
		"localhost": false, ":8085": false, "localhost:0": false, "localhost:99999": false, "http://localhost:8085": false, "localhost:port": false,
	} {
		got := faultsOf(func(f *Faults) { Connection{EmulatorEndpoint: value}.Faults(f, "sink.Config") })
		if (got == "") != ok {
			t.Errorf("%q: %q", value, got)
		}
	}
}

// A key file's path is not for logs.
func TestConnection_FaultsNeverNameTheKeyFile(t *testing.T) {
	got := faultsOf(func(f *Faults) {
		Connection{EmulatorEndpoint: "localhost:1", ServiceAccountKeyFile: "/secret/key.json"}.Faults(f, "source.Config")
	})
	if !strings.Contains(got, "source.Config.ServiceAccountKeyFile") || strings.Contains(got, "secret") {
		t.Errorf("got %q", got)
	}
}

// A DoFn carries its options to the workers as JSON.
func TestOptions_TravelAsJSON(t *testing.T) {
	in := struct {
		P Publisher
		S Subscriber
		L Limit
		C Connection
		T TopicCreate
		D CreateDisposition
		O OrderBy
		N *SubscriptionCreate
	}{
		Publisher{MaxInFlightBytes: Unbounded, RetryMaxRPCTimeout: Disabled}, Subscriber{MaxExtension: Disabled}, Limit{MaxMessages: 3},
		Connection{Endpoint: "e:1"}, TopicCreate{AllowedPersistenceRegions: []string{"europe-west1"}}, CreateNever, OrderByKey,
		&SubscriptionCreate{AckDeadline: time.Minute, NeverExpire: true, DeadLetterPolicy: &DeadLetterPolicy{MaxDeliveryAttempts: 7}},
	}
	out := in
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
