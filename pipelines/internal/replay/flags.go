package replay

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// settings are what the flags say.
type settings struct {
	program.Common

	subscription  string
	destinations  []string
	errorContains string
	after, before time.Time
	maxHops       int
	outputTopic   string
	queueTopic    string // of letters that fail again; the subscription's own where it is not given
	ownTopic      string // of the subscription; empty where it is not known
	begun         time.Time
	maxLeft       int
	idle          time.Duration
	duration      time.Duration
}

var sections = []program.Section{
	{Title: "What to replay", Flags: []string{"dead_letter_subscription", "destination", "error_contains", "given_up_after", "given_up_before", "max_hops"}},
	{Title: "Where to", Flags: []string{"output_topic", "dead_letter_topic"}},
	{Title: "When to end", Flags: []string{"stop_when_idle", "max_duration", "max_left"}},
	{Title: "As every program here", Flags: program.CommonFlags},
}

// ownFlags defines replay's flags.
func ownFlags(s *settings) *flag.FlagSet {
	fs := flag.NewFlagSet("replay", flag.ContinueOnError)
	fs.StringVar(&s.subscription, "dead_letter_subscription", "", "`name` of the subscription that has the dead letters, projects/<project>/subscriptions/<id>")
	program.NamesVar(fs, &s.destinations, "destination", "comma-separated `names` of topics, and of subscriptions beside --output_topic: replay only letters that were to go there or came from there (default: all)")
	fs.StringVar(&s.errorContains, "error_contains", "", "replay only letters whose error contains that `text` (default: all)")
	fs.Func("given_up_after", "replay only letters that were given up at that `time`, as 2026-11-30T12:00:00Z, or later", timeVar(&s.after))
	fs.Func("given_up_before", "replay only letters that were given up before that `time` (default: all)", timeVar(&s.before))
	fs.IntVar(&s.maxHops, "max_hops", 5, "leave letters that have been dead letters that many `times`")
	fs.StringVar(&s.outputTopic, "output_topic", "", "`name` of the topic to publish to (default: the one that each letter was to go to)")
	fs.StringVar(&s.queueTopic, "dead_letter_topic", "", "`name` of the topic that gets what fails again (default: the subscription's own)")
	fs.DurationVar(&s.idle, "stop_when_idle", 30*time.Second, "end when no letter, or only new ones, have come for that `time`; letters that another reader holds, or a replay that was killed within 20s before, do not come")
	fs.DurationVar(&s.duration, "max_duration", 0, "end after that `time`, as 90s or 1h (default: never)")
	fs.IntVar(&s.maxLeft, "max_left", 1_000_000, "fail where that many `letters` are left in the subscription: each takes half a kilobyte of memory until the end")
	s.Define(fs)
	return fs
}

func timeVar(to *time.Time) func(string) error {
	return func(v string) error {
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return errors.New("must be a time as 2026-11-30T12:00:00Z")
		}
		*to = t
		return nil
	}
}

// parseFlags reads replay's flags and Beam's. The error joins everything that could not
// be read.
func parseFlags(args []string, now time.Time) (settings, error) {
	var s settings
	err := s.Parse(ownFlags(&s), args)
	s.begun = now
	return s, err
}

// validate reports every fault of s at once, in the words of the flags.
func (s settings) validate() error {
	var f options.Faults
	if s.maxLeft < 1 {
		f.Add("--max_left", s.maxLeft, "must be at least 1")
		s.maxLeft = 1 // Once is enough.
	}
	configs := []error{sourceConfig(s).Validate()}
	if s.queueTopic != "" { // Else it is looked up.
		configs = append(configs, sinkConfig(s).Validate())
	}
	for _, err := range program.InFlags(asFlags, configs...) {
		f.AddError(err)
	}
	if s.outputTopic != "" {
		if _, err := message.ParseTopic(s.outputTopic); err != nil {
			f.AddError(fmt.Errorf("--output_topic: %w", err))
		} else if s.outputTopic == s.queueTopic || s.outputTopic == s.ownTopic {
			f.Add("--output_topic", s.outputTopic, "must be another topic than that of the dead letters, or they would go round in circles")
		}
	}
	for _, name := range s.destinations {
		if _, err := message.ParseTopic(name); err != nil && !isSubscription(name) {
			f.Add("--destination", fmt.Sprintf("%q", name), "must be the full name of a topic, projects/<project>/topics/<id>, or of a subscription")
		}
	}
	if !s.after.IsZero() && !s.before.IsZero() && !s.after.Before(s.before) {
		f.Add("--given_up_after", s.after.Format(time.RFC3339), "must be before --given_up_before ("+s.before.UTC().Format(time.RFC3339)+"), or no letter is chosen")
	}
	if s.maxHops < 1 {
		f.Add("--max_hops", s.maxHops, "must be at least 1")
	}
	if s.idle == 0 {
		f.Add("--stop_when_idle", s.idle, "must be at least 1ms: a replay ends by itself")
	}
	program.PrismFaults(&f, "what is left is kept track of in its own process")
	s.Faults(&f)
	return f.Err()
}

var asFlags = strings.NewReplacer(
	"source.Config.Subscriptions[0]", "--dead_letter_subscription",
	"source.Config.Subscriptions", "--dead_letter_subscription",
	"sink.Config.Topic", "--output_topic",
	"sink.Config.Resolve: ", "",
	routed.Resolve().String()+" chooses that of each record", "each letter says where it was to go",
	"sink.Config.OnFailure: dead-letter queue: dlq.Config.Topic", "--dead_letter_topic",
	"sink.Config.OnFailure", "--dead_letter_topic",
	"goes where OnFailure says", "goes to --dead_letter_topic",
	" for others (OnDecodeFailure source.Leave())", "",
	"options.Subscriber.MaxOutstandingMessages and MaxOutstandingBytes", "--max_left",
)

// plan is what --dry_run prints before the letters are looked at.
func (s settings) plan() program.Plan {
	p := program.Plan{Name: "replay", Would: "publish these dead letters again"}
	add := func(name, value string) {
		if value != "" {
			p.Settings = append(p.Settings, [2]string{name, value})
		}
	}
	add("chosen destinations", strings.Join(s.destinations, ", "))
	add("error contains", s.errorContains)
	if !s.after.IsZero() {
		add("given up from", s.after.UTC().Format(time.RFC3339))
	}
	if !s.before.IsZero() {
		add("given up before", s.before.UTC().Format(time.RFC3339))
	}
	add("there at", s.begun.UTC().Format(time.RFC3339))
	add("hops", fmt.Sprintf("below %d", s.maxHops))
	add("until", program.Until(sourceConfig(s).Limit))
	return p
}

func (s settings) choice() choice {
	return choice{
		destinations:  s.destinations,
		errorContains: s.errorContains,
		after:         s.after,
		before:        s.before,
		begun:         s.begun,
		maxHops:       s.maxHops,
		outputTopic:   s.outputTopic,
		queueTopic:    s.queueTopic,
		ownTopic:      s.ownTopic,
	}
}
