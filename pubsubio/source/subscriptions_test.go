package source

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// What would be created and then refused is refused before, and all of it at once.
func TestConfig_FaultsOfCreateInOneError(t *testing.T) {
	cfg := Config{
		Subscriptions: []Subscription{
			{Name: subA, Create: &options.SubscriptionCreate{Topic: aTopic, EnableMessageOrdering: true}},
			{Name: subB, Create: &options.SubscriptionCreate{AckDeadline: time.Second, Filter: strings.Repeat("x", 300)}},
			{Name: subC, Create: &options.SubscriptionCreate{
				Topic: "events", EnableMessageOrdering: true,
				DeadLetterPolicy: &options.DeadLetterPolicy{Topic: "dead", MaxDeliveryAttempts: 3},
			}},
		},
		Ordering:      options.PerKey,
		StartPosition: options.FromTimestamp(time.Time{}),
	}
	wantError(t, cfg.Validate(), `source.Config.Subscriptions[1].Create.Topic: topic "": must have the form projects/<project>/topics/<id>
source.Config.Subscriptions[1].Create.AckDeadline: 1s: must be whole seconds, 10s to 10m0s
source.Config.Subscriptions[1].Create.Filter: (300 bytes): must have at most 256 bytes
source.Config.Subscriptions[1].Create.EnableMessageOrdering: false: must be true beside Ordering options.PerKey
source.Config.Subscriptions[2].Create.Topic: topic "events": must have the form projects/<project>/topics/<id>
source.Config.Subscriptions[2].Create.DeadLetterPolicy.MaxDeliveryAttempts: 3: must be 5 to 100
source.Config.Subscriptions[2].Create.DeadLetterPolicy.Topic: topic "dead": must have the form projects/<project>/topics/<id>
source.Config.StartPosition: options.FromTimestamp(): must be given a time; options.EarliestRetained() is for all that is retained`)
}

func TestConfig_NackNeedsADeadLetterPolicyInCreate(t *testing.T) {
	cfg := Config{
		Subscriptions: []Subscription{
			{Name: subA, Create: creatable},
			{Name: subB, Create: &options.SubscriptionCreate{Topic: aTopic, DeadLetterPolicy: &options.DeadLetterPolicy{Topic: deadTopic}}},
			{Name: subC}, // The startup looks at what exists.
		},
		OnDecodeFailure: Nack(),
	}
	wantError(t, cfg.Validate(), "source.Config.Subscriptions[0].Create.DeadLetterPolicy: (unset): must be set beside OnDecodeFailure source.Nack(), or what cannot be decoded comes again for ever")
}

// Ordering, returned messages and a dead-letter policy together: keys that were once
// used were delivered no more.
func TestConfig_C12_PerKeyWithNackIsRefused(t *testing.T) {
	cfg := Config{Subscriptions: From(subA), Ordering: options.PerKey, OnDecodeFailure: Nack()}
	wantError(t, cfg.Validate(), "source.Config.OnDecodeFailure: source.Nack(): must be another policy beside Ordering options.PerKey: the service would hold back the messages of a key behind the returned one")
}

// Subscriptions and topics of domain-scoped projects, and a topic in another project.
func TestConfig_C24_UncommonNamesAreAccepted(t *testing.T) {
	cfg := Config{Subscriptions: []Subscription{{
		Name:   "projects/ex.com:p/subscriptions/a.b~c%2B+d-e",
		Create: &options.SubscriptionCreate{Topic: "projects/other.org:q/topics/a.b~c%2B+d-e"},
	}}}
	wantError(t, cfg.Validate(), "")
	for _, id := range []string{"ab", "1ab", "goog1", strings.Repeat("a", 256)} {
		for _, cfg := range []Config{
			{Subscriptions: From("projects/p/subscriptions/" + id)},
			{Subscriptions: []Subscription{{Name: subA, Create: &options.SubscriptionCreate{Topic: "projects/p/topics/" + id}}}},
		} {
			if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "the id must") {
				t.Errorf("%+v: error %v", cfg, err)
			}
		}
	}
}

// The workers get what the program said, with the time at which it said so.
func TestTryRead_LatestIsTheTimeOfConstruction(t *testing.T) {
	p, s := beam.NewPipelineWithRoot()
	before := time.Now()
	create := &options.SubscriptionCreate{Topic: aTopic, DeadLetterPolicy: &options.DeadLetterPolicy{Topic: deadTopic, MaxDeliveryAttempts: 7}}
	if _, err := TryRead(s, Config{Subscriptions: []Subscription{{Name: subA, Create: create}}, StartPosition: options.Latest()}, Message); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	fn := startupOf(t, p)
	b, err := json.Marshal(fn)
	if err != nil {
		t.Fatal(err)
	}
	var onWorker startupFn
	if err := json.Unmarshal(b, &onWorker); err != nil {
		t.Fatal(err)
	}
	to, seeks := onWorker.Config.StartPosition.SeekTime()
	if !seeks || to.Before(before.Truncate(0)) || to.After(after) {
		t.Errorf("a worker seeks to %v (%v), constructed between %v and %v", to, seeks, before, after)
	}
	if got := onWorker.Config.Subscriptions[0].Create; *got.DeadLetterPolicy != *create.DeadLetterPolicy || got.Topic != aTopic {
		t.Errorf("a worker creates %+v", got)
	}
}

// startupOf returns the startup of a pipeline with one read.
func startupOf(t *testing.T, p *beam.Pipeline) *startupFn {
	t.Helper()
	edges, _, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edges {
		if e.DoFn == nil {
			continue
		}
		if fn, ok := e.DoFn.Recv.(*startupFn); ok {
			return fn
		}
	}
	t.Fatal("the read has no startup")
	return nil
}
