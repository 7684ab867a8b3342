package loadgen

import (
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/load"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// settings are what the flags say.
type settings struct {
	program.Common

	topic    string
	create   bool
	messages int64         // 0: without end
	duration time.Duration // 0: without end
	rate     float64       // messages a second, 0: as fast as it goes
	burst    int64
	size     string // as it was given
	stream   load.Stream
}

var sections = []program.Section{
	{Title: "Where to publish", Flags: []string{"topic", "create_topic"}},
	{Title: "How much", Flags: []string{"messages", "duration", "rate", "burst"}},
	{Title: "What messages", Flags: []string{"keys", "size", "ordering", "poison", "run_id"}},
	{Title: "As every program here", Flags: program.CommonFlags},
}

// ownFlags defines loadgen's flags.
func ownFlags(s *settings) *flag.FlagSet {
	fs := flag.NewFlagSet("loadgen", flag.ContinueOnError)
	fs.StringVar(&s.topic, "topic", "", "`name` of the topic to publish to, projects/<project>/topics/<id>")
	fs.BoolVar(&s.create, "create_topic", false, "create the topic if it does not exist (default: fail)")
	fs.Int64Var(&s.messages, "messages", 0, "end after `n` messages (default: never)")
	fs.DurationVar(&s.duration, "duration", 0, "end after that `time`, as 90s or 1h (default: never)")
	fs.Float64Var(&s.rate, "rate", 1000, "`messages` a second; 0 is as fast as it goes")
	fs.Int64Var(&s.burst, "burst", 1, "`messages` that are due at the same time, at the same rate on average")
	fs.IntVar(&s.stream.Keys, "keys", 10, "how many `keys` take turns")
	fs.StringVar(&s.size, "size", "1000", "`bytes` of a payload, or the least and the most of them, as 100-5000")
	fs.BoolVar(&s.stream.Ordered, "ordering", false, "publish each message with its key as its ordering key, in order")
	fs.Float64Var(&s.stream.Poison, "poison", 0, "`share` of messages that are no JSON, 0 to 1")
	fs.StringVar(&s.stream.Run, "run_id", "", "`name` of the run, by which verify knows its messages (default: the time, and a few random letters)")
	s.Define(fs)
	return fs
}

// parseFlags reads loadgen's flags and Beam's. The error joins everything that could
// not be read.
func parseFlags(args []string) (settings, error) {
	var s settings
	err := s.Parse(ownFlags(&s), args)
	if s.stream.Run == "" {
		s.stream.Run = time.Now().UTC().Format("20060102-150405-") + uuid.NewString()[:4]
	}
	return s, err
}

// validate reports every fault of s at once, in the words of the flags, and completes
// s.
func (s *settings) validate() error {
	var f options.Faults
	for _, err := range program.InFlags(asFlags, sinkConfig(*s).Validate()) {
		f.AddError(err)
	}
	if s.messages < 0 {
		f.Add("--messages", s.messages, "must be at least 0")
	}
	if s.duration != 0 && s.duration < time.Millisecond {
		f.Add("--duration", s.duration, "must be at least 1ms")
	}
	if !(s.rate >= 0 && s.rate <= 1e9) { // nor NaN
		f.Add("--rate", s.rate, "must be 0 to 1,000,000,000 messages a second")
	}
	if s.burst < 1 || s.burst > 1e9 {
		f.Add("--burst", s.burst, "must be 1 to 1,000,000,000")
	}
	if s.burst > 1 && s.rate == 0 {
		f.Add("--burst", s.burst, "must be 1 beside --rate=0, which has no pauses")
	}
	s.streamFaults(&f)
	program.PrismFaults(&f, "one process keeps the rate and the count")
	s.Faults(&f)
	return f.Err()
}

func (s *settings) streamFaults(f *options.Faults) {
	if s.stream.Keys < 1 || s.stream.Keys > load.MaxKeys {
		f.Add("--keys", s.stream.Keys, "must be 1 to "+program.Grouped(load.MaxKeys))
	}
	if !(s.stream.Poison >= 0 && s.stream.Poison <= 1) { // nor NaN
		f.Add("--poison", s.stream.Poison, "must be a share, 0 to 1")
	}
	var ok bool
	if s.stream.MinSize, s.stream.MaxSize, ok = sizes(s.size); !ok {
		f.Add("--size", fmt.Sprintf("%q", s.size), fmt.Sprintf("must be a number of bytes, or two as 100-5000, each %s to %s", program.Grouped(load.MinSize), program.Grouped(load.MaxSize)))
	}
	if !isRunID(s.stream.Run) {
		f.Add("--run_id", fmt.Sprintf("%.40q", s.stream.Run), "must have 1 to 100 of a-z A-Z 0-9 - . _")
	}
}

// sizes reads the least and the most bytes of a payload.
func sizes(s string) (least, most int, ok bool) {
	first, second, ranged := strings.Cut(s, "-")
	least, err := strconv.Atoi(strings.TrimSpace(first))
	most = least
	if ranged && err == nil {
		most, err = strconv.Atoi(strings.TrimSpace(second))
	}
	return least, most, err == nil && least >= load.MinSize && least <= most && most <= load.MaxSize
}

func isRunID(s string) bool {
	return len(s) >= 1 && len(s) <= 100 && !strings.ContainsFunc(s, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		return !letter && (r < '0' || r > '9') && !strings.ContainsRune("-._", r)
	})
}

var asFlags = strings.NewReplacer(
	"sink.Config.Topic", "--topic",
	"the disposition is options.CreateNever: create the topic, or", "give --create_topic, create the topic, or",
	"create it with gcloud pubsub topics create", "give --create_topic, or create it with gcloud pubsub topics create",
)

// end is the number of messages, or more than there will ever be.
func (s *settings) end() int64 {
	if s.messages > 0 {
		return s.messages
	}
	return math.MaxInt64
}

// plan is what --dry_run prints.
func (s *settings) plan() program.Plan {
	var ends []string
	if s.messages > 0 {
		ends = append(ends, program.Grouped(s.messages)+" messages are published")
	}
	if s.duration > 0 {
		ends = append(ends, fmt.Sprintf("%v have passed", s.duration))
	}
	rate := "as fast as it goes"
	if s.rate > 0 {
		rate = strconv.FormatFloat(s.rate, 'f', -1, 64) + " messages a second"
	}
	if s.burst > 1 {
		rate += ", in bursts of " + program.Grouped(s.burst)
	}
	keys := program.Grouped(int64(s.stream.Keys))
	if s.stream.Ordered {
		keys += ", in order"
	}
	return program.Plan{
		Name:  "loadgen",
		Would: "publish numbered messages to this topic",
		Settings: [][2]string{
			{"run", s.stream.Run},
			{"until", strings.Join(append(ends, "it is interrupted"), ", or ")},
			{"rate", rate},
			{"keys", keys},
			{"payloads", s.size + " bytes"},
			{"poison", strconv.FormatFloat(100*s.stream.Poison, 'f', -1, 64) + " %"},
		},
	}
}
