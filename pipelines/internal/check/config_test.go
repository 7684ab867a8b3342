package check

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// Everything that a file can say.
func TestConfig_ReadsAllThatAConfigSays(t *testing.T) {
	got, err := readConfigs([]byte(`{
		"source": [{
			"Subscriptions": ["projects/p/subscriptions/one", {"Name": "projects/p/subscriptions/two", "Create": {
				"Topic": "projects/p/topics/two", "AckDeadline": "1m", "EnableMessageOrdering": true,
				"DeadLetterPolicy": {"Topic": "projects/p/topics/dead", "MaxDeliveryAttempts": 7}}}],
			"StartPosition": "2026-11-30T12:00:00Z", "Ordering": "PerKey", "OnDecodeFailure": "Nack", "NackDelay": "Disabled",
			"Limit": {"MaxMessages": 5}, "Subscriber": {"MaxOutstandingBytes": 1000}, "WatermarkLag": "1h30m"
		}, {
			"StartPosition": "Latest",
			"OnDecodeFailure": {"SendTo": {"Topic": "projects/p/topics/letters", "MaxInFlightMessages": "WriteThrough", "FlushTimeout": "10s"}}
		}],
		"sink": {"Topic": "projects/p/topics/out", "CreateDisposition": "CreateNever", "OrderBy": "OrderByKey", "OnFailure": "LogAndDrop",
			"TopicCreate": {"AllowedPersistenceRegions": ["europe-west1"]}, "Publisher": {"EnableMessageOrdering": true, "MaxInFlightBytes": "Unbounded"}},
		"dlq": [{"Topic": "projects/p/topics/letters", "EmulatorEndpoint": "h:1"}]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := check.Configs{
		Sources: []source.Config{{
			Subscriptions: []source.Subscription{{Name: "projects/p/subscriptions/one"}, {Name: "projects/p/subscriptions/two", Create: &options.SubscriptionCreate{
				Topic: "projects/p/topics/two", AckDeadline: time.Minute, EnableMessageOrdering: true,
				DeadLetterPolicy: &options.DeadLetterPolicy{Topic: "projects/p/topics/dead", MaxDeliveryAttempts: 7},
			}}},
			StartPosition: options.FromTimestamp(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)), Ordering: options.PerKey,
			OnDecodeFailure: source.Nack(), NackDelay: options.Disabled, Limit: options.Limit{MaxMessages: 5},
			Subscriber: options.Subscriber{MaxOutstandingBytes: 1000}, WatermarkLag: 90 * time.Minute,
		}, {
			StartPosition:   options.Latest(),
			OnDecodeFailure: source.SendTo(dlq.Config{Topic: "projects/p/topics/letters", MaxInFlightMessages: dlq.WriteThrough, FlushTimeout: 10 * time.Second}),
		}},
		Sinks: []sink.Config{{
			Topic: "projects/p/topics/out", CreateDisposition: options.CreateNever, OrderBy: options.OrderByKey, OnFailure: sink.LogAndDrop(),
			TopicCreate: options.TopicCreate{AllowedPersistenceRegions: []string{"europe-west1"}},
			Publisher:   options.Publisher{EnableMessageOrdering: true, MaxInFlightBytes: options.Unbounded},
		}},
		Queues: []dlq.Config{{Topic: "projects/p/topics/letters", EmulatorEndpoint: "h:1"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
}

// Each fault names its place, what may be there, and comes with all others.
func TestConfig_EachFault(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"nothing":              {"", "line 1, column 0: no JSON object: it ends too early"},
		"cut off":              {"{\n \"sink\": {", "line 2, column 10: no JSON object: it ends too early"},
		"malformed":            {"{\n \"sink\": x}", "line 2, column 10: no JSON object: invalid character 'x' looking for beginning of value"},
		"an array":             {`[]`, "line 1, column 1: no JSON object: must be an object, it is array"},
		"more":                 {`{"sink": {"Topic": "t"}} {}`, "line 1, column 26: no JSON object: there is more behind the object"},
		"empty":                {`{}`, `it holds no configuration: give at least one of "source", "sink" and "dlq"`},
		"no configuration":     {`{"queue": {}}`, `queue: must be "source", "sink" or "dlq", each with a Config or an array of them`},
		"a text":               {`{"sink": "x"}`, "sink: must be an object"},
		"an unknown field":     {`{"dlq": {"Topics": ["a"]}}`, "dlq.Topics: there is no such field in dlq.Config; there are Topic, MaxInFlightMessages, FlushTimeout, ShutdownTimeout, ServiceAccountKeyFile, EmulatorEndpoint, Endpoint"},
		"a field's case":       {`{"dlq": {"topic": "a"}}`, "dlq.topic: there is no such field in dlq.Config; there are Topic, MaxInFlightMessages, FlushTimeout, ShutdownTimeout, ServiceAccountKeyFile, EmulatorEndpoint, Endpoint"},
		"a resolver":           {`{"sink": {"Resolve": "byRegion"}}`, "sink.Resolve: is a function of the program, which cannot be in a file: leave it out, and give the topics that are known as sinks with a Topic"},
		"a handler":            {`{"sink": {"OnFailure": "HandleWith"}}`, `sink.OnFailure: must be one of EmitFailed, Fail, LogAndDrop as a text, or {"SendTo": {…}} with a dlq.Config; a function or a queue of another type cannot be in a file`},
		"another policy":       {`{"source": {"OnDecodeFailure": {"Send": {}}}}`, `source.OnDecodeFailure: must be one of Drop, EmitFailed, Fail, Leave, Nack as a text, or {"SendTo": {…}} with a dlq.Config; a function or a queue of another type cannot be in a file`},
		"a policy's queue":     {`{"source": {"OnDecodeFailure": {"SendTo": {"FlushTimeout": 5}}}}`, `source.OnDecodeFailure.SendTo.FlushTimeout: must be a duration as "90s" or "1h30m", or "Disabled"`},
		"a duration":           {`{"source": {"WatermarkLag": "soon"}}`, `source.WatermarkLag: must be a duration as "90s" or "1h30m", or "Disabled"`},
		"an ordering":          {`{"source": {"Ordering": 1}}`, "source.Ordering: must be one of PerKey, Unordered as a text"},
		"an order":             {`{"sink": {"OrderBy": "Key"}}`, "sink.OrderBy: must be one of OrderByKey, OrderInPlace as a text"},
		"a disposition":        {`{"sink": {"CreateDisposition": "Never"}}`, "sink.CreateDisposition: must be one of CreateIfNeeded, CreateNever as a text"},
		"a position":           {`{"source": {"StartPosition": "now"}}`, `source.StartPosition: must be "ContinueFromSubscription", "EarliestRetained", "Latest" or a time as "2026-11-30T12:00:00Z"`},
		"a number":             {`{"source": [{}, {"Splits": 1.5}]}`, "source[1].Splits: must be a whole number, or one of Disabled, Unbounded, WriteThrough as a text"},
		"a number's name":      {`{"source": {"Splits": "many"}}`, "source.Splits: must be a whole number, or one of Disabled, Unbounded, WriteThrough as a text"},
		"a share":              {`{"sink": {"Publisher": {"RetryDelayMultiplier": "2"}}}`, "sink.Publisher.RetryDelayMultiplier: must be a number"},
		"a truth":              {`{"sink": {"Publisher": {"EnableMessageOrdering": "yes"}}}`, "sink.Publisher.EnableMessageOrdering: must be true or false"},
		"a name":               {`{"source": {"Subscriptions": [{"Name": 7}]}}`, "source.Subscriptions[0].Name: must be a text"},
		"no name":              {`{"sink": {"Topic": null}}`, "sink.Topic: must be a text"},
		"no array":             {`{"source": {"Subscriptions": "a"}}`, "source.Subscriptions: must be an array"},
		"a setting of another": {`{"source": {"Subscriptions": [{"Name": "a", "Create": {"Topic": "b", "Labels": {}}}]}}`, "source.Subscriptions[0].Create.Labels: there is no such field in options.SubscriptionCreate; there are Topic, AckDeadline, EnableMessageOrdering, MessageRetention, RetainAckedMessages, ExpirationTTL, NeverExpire, DeadLetterPolicy, Filter"},
		"a kind twice":         {`{"sink": {"Topic": "a"}, "dlq": {"Topic": "a"}, "sink": {"Topic": "b"}}`, "sink: must be there once: for several, give an array of them"},
		"a field twice":        {`{"source": {"Subscriptions": ["a"], "Splits": 1, "Subscriptions": ["b"], "Splits": 2}}`, "source.Splits: must be there once\nsource.Subscriptions: must be there once, with all of them in its array"},
		"a queue twice":        {`{"sink": {"OnFailure": {"SendTo": {}, "SendTo": {}}}}`, "sink.OnFailure.SendTo: must be there once"},
		"several":              {`{"sink": {"Topic": 1, "OrderBy": 1}, "source": {"Splits": true}}`, "sink.OrderBy: must be one of OrderByKey, OrderInPlace as a text\nsink.Topic: must be a text\nsource.Splits: must be a whole number, or one of Disabled, Unbounded, WriteThrough as a text"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readConfigs([]byte(c.file)); err == nil || err.Error() != c.want {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// A field of a Config that a file could not say would be found out by a user.
func TestConfig_EveryFieldHasAForm(t *testing.T) {
	var walk func(at string, of reflect.Type)
	walk = func(at string, of reflect.Type) {
		var d decoder
		if d.readSpecial(at, []byte(`0`), reflect.New(of).Elem()) {
			return
		}
		switch of.Kind() {
		case reflect.Struct:
			for i := range of.NumField() {
				if f := of.Field(i); f.IsExported() {
					walk(at+"."+f.Name, f.Type)
				}
			}
		case reflect.Slice, reflect.Pointer:
			walk(at, of.Elem())
		case reflect.Int, reflect.Int64, reflect.String, reflect.Bool, reflect.Float64:
			if of.PkgPath() != "" {
				t.Errorf("%s: %v has no names", at, of)
			}
		default:
			t.Errorf("%s: a %v cannot be read", at, of)
		}
	}
	walk("source.Config", reflect.TypeFor[source.Config]())
	walk("sink.Config", reflect.TypeFor[sink.Config]())
	walk("dlq.Config", reflect.TypeFor[dlq.Config]())
}

// A connection of the flags holds where the file says nothing.
func TestConfig_IsChecked(t *testing.T) {
	srv := newServer(t)
	file := filepath.Join(t.TempDir(), "pipeline.json")
	text := `{
		"source": {"Subscriptions": ["` + inSub + `"], "Splits": -1, "OnDecodeFailure": {"SendTo": {"Topic": "` + outTopic + `"}}},
		"sink": [{"Topic": "` + outTopic + `", "OnFailure": {"SendTo": {"Topic": "projects/p/topics/none"}}}, {"Topic": "` + outTopic + `", "EmulatorEndpoint": "` + srv.Endpoint() + `"}],
		"dlq": {"Topic": "projects/p/topics/nobody"}
	}`
	srv.MustCreateTopic("projects/p/topics/nobody")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := runCheck(t.Context(), t, "--config="+file, "--emulator_endpoint="+srv.Endpoint())
	o.mustEnd(t, program.ExitFailed)
	for _, want := range []string{
		"settings\n  fault    source.Config.Splits: -1: must be at least 1\n",
		"  for      read (source.Config.Subscriptions[0])\n",
		"topic projects/p/topics/moved\n  for      sent dead letters (source.Config.OnDecodeFailure)\n  for      published to (sink.Config.Topic)\n  for      published to (sink.Config[1].Topic)\n  state    exists\n",
		"topic projects/p/topics/none\n  for      sent dead letters (sink.Config.OnFailure)\n  state    does not exist\n",
		"$ gcloud pubsub topics create none --project=p\n",
		"topic projects/p/topics/nobody\n  for      sent dead letters (dlq.Config.Topic)\n",
		"  warning  has no subscription, so that every dead letter is lost; ",
		"\nthe pipeline cannot run as it is told: 2 faults to mend\n",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in:\n%s", want, o.stdout)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"source": {"Subscriptions": ["a"], "OnDecodeFailure": {"SendTo": {"Topic": "b"}}}}`))
	f.Add([]byte(`{"sink": [{"Publisher": {"RetryTotalTimeout": "Disabled"}}, null], "dlq": 1}`))
	f.Add([]byte(`{"source": {"Subscriptions": [null, {"Create": null}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := readConfigs(text)
		if err != nil && err.Error() == "" || err == nil && len(c.Sources)+len(c.Sinks)+len(c.Queues) == 0 {
			t.Errorf("%q: %v, %v", text, c, err)
		}
	})
}
