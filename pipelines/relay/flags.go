package main

import (
	_ "embed"
	"flag"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// settings are what the flags say.
type settings struct {
	program.Common

	subscriptions []string
	topic         string
	limit         options.Limit
	dropKeys      bool  // publish a message that has an ordering key without it
	total         int64 // messages after which the relay ends, 0 where nobody knows

	embedded         bool
	embeddedMessages int
}

//go:embed doc.go
var docText string

var manual = program.Manual{
	Source: docText,
	Sections: []program.Section{
		{Title: "What to move", Flags: []string{"input_subscriptions", "output_topic", "drop_ordering_keys"}},
		{Title: "When to end", Flags: []string{"max_messages", "max_duration", "stop_when_idle"}},
		{Title: "Without Pub/Sub", Flags: []string{"embedded", "embedded_messages"}},
		{Title: "As every program here", Flags: program.CommonFlags},
	},
}

// ownFlags defines the relay's flags.
func ownFlags(s *settings) *flag.FlagSet {
	fs := flag.NewFlagSet("relay", flag.ContinueOnError)
	program.NamesVar(fs, &s.subscriptions, "input_subscriptions", "comma-separated `names` of the subscriptions to read, each projects/<project>/subscriptions/<id>")
	fs.StringVar(&s.topic, "output_topic", "", "`name` of the topic to publish to, projects/<project>/topics/<id>")
	fs.Int64Var(&s.limit.MaxMessages, "max_messages", 0, "end after `n` messages (default: never)")
	fs.DurationVar(&s.limit.MaxDuration, "max_duration", 0, "end after that `time`, as 90s or 1h (default: never)")
	fs.DurationVar(&s.limit.StopWhenIdle, "stop_when_idle", 0, "end when nothing has come for that `time` (default: never)")
	fs.BoolVar(&s.dropKeys, "drop_ordering_keys", false, "publish messages that have an ordering key without it, in any order (default: fail)")
	fs.BoolVar(&s.embedded, "embedded", false, "relay messages of the program's own through a server in its process, and check that every one arrived")
	fs.IntVar(&s.embeddedMessages, "embedded_messages", 10_000, "how many `messages` --embedded relays")
	s.Define(fs)
	return fs
}

// parseFlags reads the relay's flags and Beam's. The error joins everything that
// could not be read.
func parseFlags(args []string) (settings, error) {
	var s settings
	err := s.Parse(ownFlags(&s), args)
	s.total = s.limit.MaxMessages
	return s, err
}

// validate reports every fault of s at once, in the words of the flags.
func (s settings) validate() error {
	var f options.Faults
	if s.embedded {
		s.embeddedFaults(&f)
	} else {
		for _, err := range program.InFlags(asFlags, sourceConfig(s).Validate(), sinkConfig(s).Validate()) {
			f.AddError(err)
		}
		if program.OnDirect() && !s.limit.IsSet() {
			f.Add("--runner", *runners.Runner, "must have one of --max_messages, --max_duration and --stop_when_idle beside it: the direct runner runs a pipeline that ends")
		}
		if s.Given["embedded_messages"] {
			f.Add("--embedded_messages", s.embeddedMessages, "must have --embedded beside it")
		}
	}
	s.Faults(&f)
	return f.Err()
}

func (s settings) embeddedFaults(f *options.Faults) {
	for _, name := range []string{"input_subscriptions", "output_topic", "emulator_endpoint", "pubsub_endpoint", "service_account_key_file", "max_messages", "max_duration", "stop_when_idle", "drop_ordering_keys", "dry_run"} {
		if s.Given[name] {
			f.Add("--"+name, "(set)", "must not be given beside --embedded, which brings a server and messages of its own")
		}
	}
	if s.embeddedMessages < 1 {
		f.Add("--embedded_messages", s.embeddedMessages, "must be at least 1")
	}
	if !program.RunsHere() {
		f.Add("--runner", *runners.Runner, "must be prism or direct beside --embedded: workers elsewhere do not reach a server in this process")
	}
}

var asFlags = strings.NewReplacer(
	"source.Config.Subscriptions", "--input_subscriptions",
	"sink.Config.Topic", "--output_topic",
	"source.Config.EmulatorEndpoint", "--emulator_endpoint",
	"sink.Config.EmulatorEndpoint", "--emulator_endpoint",
	"source.Config.Endpoint", "--pubsub_endpoint",
	"sink.Config.Endpoint", "--pubsub_endpoint",
	"source.Config.ServiceAccountKeyFile", "--service_account_key_file",
	"sink.Config.ServiceAccountKeyFile", "--service_account_key_file",
	"options.Limit.MaxMessages", "--max_messages",
	"options.Limit.MaxDuration", "--max_duration",
	"options.Limit.StopWhenIdle", "--stop_when_idle",
	"beside EmulatorEndpoint", "beside --emulator_endpoint",
	"; use Splits to read it in parallel", "",
)

// plan is what --dry_run checks and prints.
func (s settings) plan() program.Plan {
	p := program.Plan{
		Name:      "relay",
		Would:     "move messages from these subscriptions to this topic",
		Resources: []program.Resource{{Name: s.topic, Flag: "--output_topic"}},
	}
	for _, name := range s.subscriptions {
		p.Resources = append(p.Resources, program.Resource{Name: name, Flag: "--input_subscriptions", Subscription: true})
	}
	keys := "a message with one fails the relay"
	if s.dropKeys {
		keys = "dropped"
	}
	p.Settings = [][2]string{{"until", program.Until(s.limit)}, {"ordering keys", keys}}
	return p
}
