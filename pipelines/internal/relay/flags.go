package relay

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// settings are what the flags say.
type settings struct {
	program.Common

	subscriptions []string
	subscribeTo   string // the topic of subscriptions that are missing, and then created
	filter        string // an expression over attributes, empty for all messages
	position      options.StartPosition
	positionText  string // as it was given
	topic         string
	// topicAttribute is the key of the attribute that says a message's topic.
	topicAttribute  string
	createTopics    bool
	policy          string // one of the policies, or empty
	deadLetterTopic string
	limit           options.Limit
	ordering        bool  // keep the order of a key's messages
	dropKeys        bool  // publish a message that has an ordering key without it
	total           int64 // messages after which the relay ends, 0 where nobody knows

	embedded         bool
	embeddedMessages int
}

var sections = []program.Section{
	{Title: "What to move", Flags: []string{"input_subscriptions", "filter", "create_subscriptions", "start_position"}},
	{Title: "Where to", Flags: []string{"output_topic", "output_topic_attribute", "create_topics", "ordering", "drop_ordering_keys"}},
	{Title: "What cannot be published", Flags: []string{"failure_policy", "dead_letter_topic"}},
	{Title: "When to end", Flags: []string{"max_messages", "max_duration", "stop_when_idle"}},
	{Title: "Without Pub/Sub", Flags: []string{"embedded", "embedded_messages"}},
	{Title: "As every program here", Flags: program.CommonFlags},
}

// ownFlags defines the relay's flags.
func ownFlags(s *settings) *flag.FlagSet {
	fs := flag.NewFlagSet("relay", flag.ContinueOnError)
	program.NamesVar(fs, &s.subscriptions, "input_subscriptions", "comma-separated `names` of the subscriptions to read, each projects/<project>/subscriptions/<id>")
	fs.StringVar(&s.filter, "filter", "", "move only messages whose attributes match that `expression`, in the language of Pub/Sub's own filters, as 'attributes.event = \"order.paid\"'; the others are acknowledged, and gone for these subscriptions (default: move all)")
	fs.StringVar(&s.subscribeTo, "create_subscriptions", "", "create subscriptions that are missing, to the topic of that `name` (default: a missing one fails the relay)")
	fs.Func("start_position", "where to begin in the subscriptions, each time the relay starts: `position` earliest (all that is retained), latest (what is published from now on) or a time as 2026-11-30T12:00:00Z (default: where they stand)", s.setPosition)
	fs.StringVar(&s.topicAttribute, "output_topic_attribute", "", "`key` of the attribute that holds the full name of a message's topic; messages without it go to --output_topic")
	fs.BoolVar(&s.createTopics, "create_topics", false, "create topics that are missing (default: a missing one fails the relay)")
	fs.BoolVar(&s.ordering, "ordering", false, "keep the order of the messages of an ordering key; the subscriptions must have message ordering")
	fs.StringVar(&s.policy, "failure_policy", "", "what becomes of a message that the service can never take: `policy` fail, drop or dead_letter (default: dead_letter beside --dead_letter_topic, else fail)")
	fs.StringVar(&s.deadLetterTopic, "dead_letter_topic", "", "`name` of the topic that gets such messages, each in an envelope with the reason; it must exist")
	fs.StringVar(&s.topic, "output_topic", "", "`name` of the topic to publish to, projects/<project>/topics/<id>")
	fs.Int64Var(&s.limit.MaxMessages, "max_messages", 0, "end after `n` messages that were read, those that --filter keeps back among them (default: never)")
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
		s.choiceFaults(&f)
		s.filterFaults(&f)
		if _, err := message.ParseTopic(s.subscribeTo); err != nil && s.subscribeTo != "" {
			f.AddError(fmt.Errorf("--create_subscriptions: %w", err))
			s.subscribeTo = "" // Once is enough.
		}
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

// The policies that --failure_policy takes.
const (
	policyFail       = "fail"
	policyDrop       = "drop"
	policyDeadLetter = "dead_letter"
)

// failurePolicy is the one that is asked for, or that follows.
func (s settings) failurePolicy() string {
	switch {
	case s.policy != "":
		return s.policy
	case s.deadLetterTopic != "":
		return policyDeadLetter
	}
	return policyFail
}

// setPosition reads --start_position.
func (s *settings) setPosition(v string) error {
	s.positionText = v
	switch v {
	case "earliest":
		s.position = options.EarliestRetained()
	case "latest":
		s.position = options.Latest()
	default:
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return errors.New("must be earliest, latest or a time as 2026-11-30T12:00:00Z")
		}
		s.position = options.FromTimestamp(t)
	}
	return nil
}

// choiceFaults records in f what flags say against each other.
func (s settings) choiceFaults(f *options.Faults) {
	switch policy := s.failurePolicy(); policy {
	case policyFail, policyDrop:
		if s.deadLetterTopic != "" {
			f.Add("--dead_letter_topic", fmt.Sprintf("%q", s.deadLetterTopic), "must not be given beside --failure_policy="+policy)
		}
	case policyDeadLetter:
		if s.deadLetterTopic == "" {
			f.Add("--failure_policy", policy, "must have --dead_letter_topic beside it")
		}
	default:
		f.Add("--failure_policy", fmt.Sprintf("%q", policy), "must be fail, drop or dead_letter")
	}
	if s.ordering && s.dropKeys {
		f.Add("--ordering", s.ordering, "must not be given beside --drop_ordering_keys")
	}
	// What exists, judge looks at; what is missing is on no topic yet.
	switch s.subscribeTo {
	case "":
	case s.topic:
		f.Add("--create_subscriptions", fmt.Sprintf("%q", s.subscribeTo), "must name another topic than --output_topic: every message would come round again")
	case s.deadLetterTopic:
		f.Add("--create_subscriptions", fmt.Sprintf("%q", s.subscribeTo), "must name another topic than --dead_letter_topic: every dead letter would be read again")
	}
	if s.topicAttribute != "" && s.topic != "" {
		if _, err := message.ParseTopic(s.topic); err != nil {
			f.AddError(fmt.Errorf("--output_topic: %w", err))
		}
	}
}

func (s settings) embeddedFaults(f *options.Faults) {
	for _, name := range []string{"input_subscriptions", "output_topic", "emulator_endpoint", "pubsub_endpoint", "service_account_key_file", "max_messages", "max_duration", "stop_when_idle", "drop_ordering_keys", "dry_run",
		"filter", "create_subscriptions", "start_position", "output_topic_attribute", "create_topics", "ordering", "failure_policy", "dead_letter_topic"} {
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
	", unless Resolve chooses the topics", ", unless --output_topic_attribute is given",
	"sink.Config.Resolve", "--output_topic_attribute",
	"the disposition is options.CreateNever: create the topic, or", "give --create_topics, create the topic, or",
	"set options.Publisher.EnableMessageOrdering, or clear the key", "--ordering keeps the order of a key's messages, --drop_ordering_keys publishes them without their keys",
	"create it with gcloud pubsub topics create", "give --create_topics, or create it with gcloud pubsub topics create",
	"create it with gcloud pubsub subscriptions create", "give --create_subscriptions, or create it with gcloud pubsub subscriptions create",
	"set Create in its source.Subscription", "give --create_subscriptions",
	"leave out Create or grant", "leave out --create_subscriptions or grant",
	"change the options.SubscriptionCreate in its source.Subscription", "change --create_subscriptions",
	"source.Config.StartPosition", "--start_position",
	"StartPosition options.EarliestRetained()", "--start_position=earliest",
	"StartPosition options.FromTimestamp", "--start_position ",
	"goes where OnFailure says", "goes where --failure_policy says",
	routed.Resolve().String()+" chooses that of each record", "each message says its own",
	"dead-letter queue: dlq.Config.Topic", "--dead_letter_topic",
	"sink.Config.OnFailure: dead-letter queue: dlq.Config.Topic", "--dead_letter_topic",
	"sink.Config.OnFailure", "--dead_letter_topic",
)

// plan is what --dry_run prints.
func (s settings) plan() program.Plan {
	p := program.Plan{Name: "relay", Would: "move messages from these subscriptions to this topic"}
	if s.topicAttribute != "" {
		p.Would = "move messages from these subscriptions to the topics that they name"
	}
	p.Settings = s.planned()
	return p
}

// planned are the lines of the plan beside those of the resources.
func (s settings) planned() [][2]string {
	lines := [][2]string{{"until", program.Until(s.limit)}}
	keys := "a message with one fails the relay"
	switch {
	case s.ordering:
		keys = "kept, and the order of a key"
	case s.dropKeys:
		keys = "dropped"
	}
	lines = append(lines, [2]string{"ordering keys", keys})
	if s.filter != "" {
		lines = append(lines,
			[2]string{"filter", s.filter},
			[2]string{"what does not match", "is acknowledged and not published: it is gone for these subscriptions"})
	}
	if s.topicAttribute != "" {
		lines = append(lines, [2]string{"topic", "in the attribute " + s.topicAttribute})
	}
	if s.positionText != "" {
		lines = append(lines, [2]string{"begins at", s.positionText})
	}
	if policy := s.failurePolicy(); policy != policyFail {
		lines = append(lines, [2]string{"what fails", map[string]string{policyDrop: "is dropped", policyDeadLetter: "goes to the dead-letter topic"}[policy]})
	}
	return lines
}
