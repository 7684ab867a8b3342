package windowcount

import (
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/chart"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// settings are what the flags say.
type settings struct {
	program.Common

	subscriptions      []string
	limit              options.Limit
	attribute          string
	byKey              bool
	window, every      time.Duration
	timestampAttribute string
	badTimestamp       string
	watermarkLag       time.Duration
	late               string
	lateness           time.Duration
	output             string
	plotFile           string
	top                int
}

// What --late says.
const (
	lateDrop       = "drop"
	lateDiscard    = "discard"
	lateAccumulate = "accumulate"
)

var sections = []program.Section{
	{Title: "What to count", Flags: []string{"input_subscriptions", "by_attribute", "by_ordering_key"}},
	{Title: "In which windows", Flags: []string{"window", "every", "timestamp_attribute", "bad_timestamp", "watermark_lag", "late", "allowed_lateness"}},
	{Title: "What to write", Flags: []string{"output_topic", "plot", "top"}},
	{Title: "When to end", Flags: []string{"max_messages", "max_duration", "stop_when_idle"}},
	{Title: "As every program here", Flags: program.CommonFlags},
}

// ownFlags defines windowcount's flags.
func ownFlags(s *settings) *flag.FlagSet {
	fs := flag.NewFlagSet("windowcount", flag.ContinueOnError)
	program.NamesVar(fs, &s.subscriptions, "input_subscriptions", "comma-separated `names` of the subscriptions to read, each projects/<project>/subscriptions/<id>")
	fs.StringVar(&s.attribute, "by_attribute", "", "count for each value of the attribute of that `key`")
	fs.BoolVar(&s.byKey, "by_ordering_key", false, "count for each ordering key")
	fs.DurationVar(&s.window, "window", time.Minute, "`length` of a window, as 1m or 1h")
	fs.DurationVar(&s.every, "every", 0, "`time` between the beginnings of two windows (default: the length of one, so that none overlap)")
	fs.StringVar(&s.timestampAttribute, "timestamp_attribute", "", "`key` of the attribute that holds the event time (default: the publish time)")
	fs.StringVar(&s.badTimestamp, "bad_timestamp", badFail, "what becomes of a message without that attribute, or with none that is a time: fail, drop or publish_time, see above")
	fs.DurationVar(&s.watermarkLag, "watermark_lag", 10*time.Second, "by how much `time` a message may come out of order and not be late")
	fs.StringVar(&s.late, "late", lateDrop, "what becomes of late messages: drop, discard or accumulate, see above")
	fs.DurationVar(&s.lateness, "allowed_lateness", 0, "for how much `time` after its end a window takes late messages, beside --late=discard or accumulate")
	fs.StringVar(&s.output, "output_topic", "", "`name` of the topic to publish the counts to (default: none)")
	fs.StringVar(&s.plotFile, "plot", "", "`file` to draw the counts into, as SVG")
	fs.IntVar(&s.top, "top", 5, "how many `labels` the table and the plot show by name")
	fs.Int64Var(&s.limit.MaxMessages, "max_messages", 0, "end after `n` messages (default: never)")
	fs.DurationVar(&s.limit.MaxDuration, "max_duration", 0, "end after that `time`, as 90s or 1h (default: never)")
	fs.DurationVar(&s.limit.StopWhenIdle, "stop_when_idle", 0, "end when nothing has come for that `time` (default: never)")
	s.Define(fs)
	return fs
}

// parseFlags reads windowcount's flags and Beam's. The error joins everything that
// could not be read.
func parseFlags(args []string) (settings, error) {
	var s settings
	err := s.Parse(ownFlags(&s), args)
	return s, err
}

// validate reports every fault of s at once, in the words of the flags.
func (s settings) validate() error {
	var f options.Faults
	configs := []error{sourceConfig(s).Validate()}
	if s.output != "" {
		configs = append(configs, sinkConfig(s).Validate())
	}
	for _, err := range program.InFlags(asFlags, configs...) {
		f.AddError(err)
	}
	switch {
	case s.attribute == "" && !s.byKey:
		f.Add("--by_attribute", `""`, "must be given, or --by_ordering_key")
	case s.attribute != "" && s.byKey:
		f.Add("--by_attribute", fmt.Sprintf("%q", s.attribute), "must not be given beside --by_ordering_key")
	}
	s.windowFaults(&f)
	if s.top < 1 || s.top > chart.MaxLines-1 {
		f.Add("--top", s.top, fmt.Sprintf("must be 1 to %d: more cannot be told apart", chart.MaxLines-1))
	}
	program.PrismFaults(&f, "the table and the plot are in its own process")
	program.OutputFaults(&f, "plot", s.plotFile)
	program.SameFileFaults(&f, "report", s.Report, "plot", s.plotFile)
	s.Faults(&f)
	return f.Err()
}

func (s settings) windowFaults(f *options.Faults) {
	if s.window < time.Millisecond || s.window%time.Millisecond != 0 {
		f.Add("--window", s.window, "must be whole milliseconds, at least 1ms")
	}
	if s.every != 0 && (s.every < time.Millisecond || s.every%time.Millisecond != 0 || s.every > s.window) {
		f.Add("--every", s.every, "must be whole milliseconds, at least 1ms and at most --window, or some messages would lie in no window")
	} else if s.every != 0 && s.window/s.every > maxOverlap {
		f.Add("--every", s.every, fmt.Sprintf("must be at least a %dth of --window: each message counts in that many windows", maxOverlap))
	}
	s.badTimestampFaults(f)
	switch s.late {
	case lateDrop:
		if s.lateness != 0 {
			f.Add("--allowed_lateness", s.lateness, "must have --late=discard or --late=accumulate beside it")
		}
	case lateDiscard, lateAccumulate:
		if s.lateness < time.Millisecond {
			f.Add("--allowed_lateness", s.lateness, "must be at least 1ms beside --late="+s.late)
		}
	default:
		f.Add("--late", fmt.Sprintf("%q", s.late), "must be drop, discard or accumulate")
	}
}

// maxOverlap is how many windows a message lies in at most.
const maxOverlap = 1000

var asFlags = strings.NewReplacer(
	"source.Config.Subscriptions", "--input_subscriptions",
	"source.Config.TimestampAttribute", "--timestamp_attribute",
	"TimestampAttribute \"", "--timestamp_attribute \"",
	"source.Config.WatermarkLag", "--watermark_lag",
	"sink.Config.Topic", "--output_topic",
)

// by names what labels are.
func (s settings) by() string {
	if s.byKey {
		return "ordering key"
	}
	return s.attribute
}

// plan is what --dry_run prints.
func (s settings) plan() program.Plan {
	windows := s.window.String()
	if s.every != 0 {
		windows += ", one every " + s.every.String()
	}
	eventTime := "publish time"
	if s.timestampAttribute != "" {
		eventTime = "attribute " + s.timestampAttribute + "; without one that is a time: " + s.badTimestamp
	}
	late := s.late
	if s.lateness > 0 {
		late += ", for " + s.lateness.String()
	}
	return program.Plan{
		Name:  "windowcount",
		Would: "count the messages of these subscriptions",
		Settings: [][2]string{
			{"by", s.by()}, {"windows", windows}, {"event time", eventTime}, {"late messages", late}, {"until", program.Until(s.limit)},
		},
	}
}
