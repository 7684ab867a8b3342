package sink

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

const here = "github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink."

// Every value that Config refuses, and the whole text: it names the field, the value,
// the rule and what to do.
func TestConfig_Validate(t *testing.T) {
	keyed := options.Publisher{EnableMessageOrdering: true}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Topic: topic}, ""},
		{Config{Resolve: ResolveWith(byFirstLetter)}, ""},
		{Config{}, `sink.Config.Topic: topic "": must have the form projects/<project>/topics/<id>, unless Resolve chooses the topics`},
		{Config{Topic: "out"}, `sink.Config.Topic: topic "out": must have the form projects/<project>/topics/<id>`},
		{Config{Topic: "projects/p/topics/1st"}, `sink.Config.Topic: topic "projects/p/topics/1st": the id must start with a letter`},
		{Config{Topic: topic, Resolve: ResolveWith(byFirstLetter)}, `sink.Config.Topic: "projects/p/topics/out": must be empty beside Resolve, which chooses the topic of each record`},
		{Config{Resolve: ResolveWith(unregisteredResolver)}, "sink.Config.Resolve: resolver " + here + "unregisteredResolver is not registered: call sink.RegisterResolver with it in init"},

		{Config{Topic: topic, CreateDisposition: options.CreateNever}, ""},
		{Config{Topic: topic, CreateDisposition: -1}, "sink.Config.CreateDisposition: -1: must be options.CreateIfNeeded or options.CreateNever"},
		{Config{Topic: topic, CreateDisposition: 2}, "sink.Config.CreateDisposition: 2: must be options.CreateIfNeeded or options.CreateNever"},
		{Config{Topic: topic, TopicCreate: options.TopicCreate{MessageRetention: time.Hour}}, ""},
		{Config{Topic: topic, TopicCreate: options.TopicCreate{MessageRetention: time.Hour}, CreateDisposition: options.CreateNever}, "sink.Config.TopicCreate: (set): must be unset beside CreateDisposition options.CreateNever, which creates no topic"},
		{Config{Topic: topic, TopicCreate: options.TopicCreate{MessageRetention: time.Minute}}, "options.TopicCreate.MessageRetention: 1m0s: must be 10m0s to 744h0m0s"},

		{Config{Topic: topic, OnFailure: Fail()}, ""},
		{Config{Topic: topic, OnFailure: LogAndDrop()}, ""},
		{Config{Topic: topic, OnFailure: EmitFailed()}, ""},
		{Config{Topic: topic, OnFailure: HandleWith(noteFailure)}, ""},
		{Config{Topic: topic, OnFailure: HandleWith(nil)}, "sink.Config.OnFailure: failure handler the function is nil"},
		{Config{Topic: topic, OnFailure: HandleWith(unregisteredHandler)}, "sink.Config.OnFailure: failure handler " + here + "unregisteredHandler is not registered: call sink.RegisterHandler with it in init"},
		{Config{Topic: topic, OnFailure: SendTo(fakeQueue{})}, ""},
		{Config{Topic: topic, OnFailure: SendTo(dlq.Config{Topic: "projects/p/topics/dead"})}, ""},
		{Config{Topic: topic, OnFailure: SendTo(dlq.Config{Topic: topic})}, `sink.Config.OnFailure: sink.SendTo(dlq.Config) to "projects/p/topics/out": must go to another topic than Topic, which refused the record and could refuse its letter, or bring it round again`},
		{Config{Resolve: ResolveWith(byFirstLetter), OnFailure: SendTo(dlq.Config{Topic: topic})}, ""},
		{Config{Topic: topic, OnFailure: SendTo(dlq.Config{})}, `sink.Config.OnFailure: dead-letter queue: dlq.Config.Topic: topic "": must have the form projects/<project>/topics/<id>`},
		{Config{Topic: topic, OnFailure: SendTo(nil)}, "sink.Config.OnFailure: the dead-letter queue is nil"},
		{Config{Topic: topic, OnFailure: SendTo(unregisteredQueue{})}, "sink.Config.OnFailure: the dead-letter queue's type sink.unregisteredQueue is not registered: call dlq.Register[sink.unregisteredQueue]() in init"},
		{Config{Topic: topic, OnFailure: SendTo(fakeQueue{Name: "invalid"})}, "sink.Config.OnFailure: dead-letter queue: fakeQueue.Name: must be valid"},

		{Config{Topic: topic, EmulatorEndpoint: "localhost:1"}, ""},
		{Config{Topic: topic, EmulatorEndpoint: "localhost"}, `sink.Config.EmulatorEndpoint: "localhost": must be host:port`},
		{Config{Topic: topic, Endpoint: "https://x"}, `sink.Config.Endpoint: "https://x": must be host:port`},
		{Config{Topic: topic, Endpoint: "e:443", EmulatorEndpoint: "localhost:1"}, `sink.Config.Endpoint: "e:443": must be empty beside EmulatorEndpoint`},
		{Config{Topic: topic, ServiceAccountKeyFile: "/secret", EmulatorEndpoint: "localhost:1"}, "sink.Config.ServiceAccountKeyFile: (set): must be empty beside EmulatorEndpoint, which takes no credentials"},

		{Config{Topic: topic, OrderBy: options.OrderByKey, Publisher: keyed}, ""},
		{Config{Topic: topic, OrderBy: options.OrderByKey}, "sink.Config.OrderBy: options.OrderByKey: needs Publisher.EnableMessageOrdering, without which no message may have an ordering key"},
		{Config{Topic: topic, OrderBy: -1}, "sink.Config.OrderBy: -1: must be options.OrderInPlace or options.OrderByKey"},
		{Config{Topic: topic, OrderBy: 2}, "sink.Config.OrderBy: 2: must be options.OrderInPlace or options.OrderByKey"},
		{Config{Topic: topic, OrderBy: options.OrderByKey, Publisher: keyed, SequenceAttribute: "seq"}, ""},
		{Config{Topic: topic, Publisher: keyed, SequenceAttribute: "seq"}, `sink.Config.SequenceAttribute: "seq": needs OrderBy options.OrderByKey: elsewhere bundles that run at once would count beside each other`},
		{Config{Topic: topic, OrderBy: options.OrderByKey, Publisher: keyed, SequenceAttribute: "googseq"}, `sink.Config.SequenceAttribute: "googseq": must not begin with goog, which the service reserves`},

		{Config{Topic: topic, TimestampAttribute: "ts", IDAttribute: "id"}, ""},
		{Config{Topic: topic, TimestampAttribute: strings.Repeat("k", 256)}, ""},
		{Config{Topic: topic, TimestampAttribute: strings.Repeat("k", 257)}, `sink.Config.TimestampAttribute: "` + strings.Repeat("k", 40) + `": must have at most 256 bytes, it has 257`},
		{Config{Topic: topic, TimestampAttribute: "a\xc5z"}, `sink.Config.TimestampAttribute: "a\xc5z": must be valid UTF-8`},
		{Config{Topic: topic, IDAttribute: "GOOGid"}, `sink.Config.IDAttribute: "GOOGid": must not begin with goog, which the service reserves`},
		{Config{Topic: topic, TimestampAttribute: "x", IDAttribute: "x"}, `sink.Config.IDAttribute: "x": must differ from TimestampAttribute`},
		{Config{Topic: topic, OrderBy: options.OrderByKey, Publisher: keyed, SequenceAttribute: "x", TimestampAttribute: "x"}, `sink.Config.TimestampAttribute: "x": must differ from SequenceAttribute`},

		{Config{Topic: topic, Publisher: options.Publisher{BatchElementCount: 1001}}, "options.Publisher.BatchElementCount: 1001: must be 1 to 1000"},
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

// Whoever has many faults is told of all of them, in the order of the fields.
func TestTryWrite_JoinsTheFaultsOfEveryPart(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	_, err := TryWrite(s, Config{
		CreateDisposition:  7,
		TopicCreate:        options.TopicCreate{EnforceInTransit: true},
		Publisher:          options.Publisher{BatchDelay: time.Microsecond},
		OnFailure:          HandleWith(unregisteredHandler),
		OrderBy:            9,
		TimestampAttribute: "googx",
		EmulatorEndpoint:   "x",
	}, func(string) (*message.Message, error) { return nil, nil }, beam.Create(s, "a"))
	var fields []string
	for line := range strings.Lines(fmt.Sprint(err)) {
		field, _, _ := strings.Cut(strings.TrimPrefix(line, "sink.Write: "), ": ")
		fields = append(fields, field)
	}
	const want = "sink.Config.Topic sink.Config.CreateDisposition options.TopicCreate.EnforceInTransit sink.Config.OnFailure " +
		"sink.Config.OrderBy sink.Config.TimestampAttribute sink.Config.EmulatorEndpoint options.Publisher.BatchDelay"
	if got := strings.Join(fields[:len(fields)-1], " "); got != want || !strings.HasPrefix(fields[len(fields)-1], "encoder ") {
		t.Errorf("faults of %q:\n%v", fields, err)
	}
}
