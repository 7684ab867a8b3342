package verify

import (
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/load"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// settings are what the flags say.
type settings struct {
	program.Common

	subscriptions []string
	ordering      bool
	limit         options.Limit
	linger        time.Duration
	expectedFile  string
	plotFile      string
	expect        expectation
}

var sections = []program.Section{
	{Title: "What to read", Flags: []string{"subscription", "ordering"}},
	{Title: "What to expect", Flags: []string{"expected", "expect", "run_id", "require_poison"}},
	{Title: "When to end", Flags: []string{"linger", "stop_when_idle", "max_duration"}},
	{Title: "What to write", Flags: []string{"plot"}},
	{Title: "As every program here", Flags: program.CommonFlags},
}

// ownFlags defines verify's flags.
func ownFlags(s *settings) *flag.FlagSet {
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	program.NamesVar(fs, &s.subscriptions, "subscription", "`name` of the subscription to read and acknowledge, projects/<project>/subscriptions/<id>, or several with commas between them: a message that comes from two of them is duplicated")
	fs.BoolVar(&s.ordering, "ordering", false, "read each key in order, and fail where one comes out of order")
	fs.StringVar(&s.expectedFile, "expected", "", "`file` that loadgen --report has written: what has to arrive (default: see --expect)")
	fs.Int64Var(&s.expect.count, "expect", 0, "how many different `messages` have to arrive (default: every number below the highest of its key)")
	fs.StringVar(&s.expect.run, "run_id", "", "`name` of the run whose messages count, beside --expect or without it (default: those of any run)")
	fs.BoolVar(&s.expect.poison, "require_poison", false, "a message that is poison is expected, too, beside --expected")
	fs.DurationVar(&s.linger, "linger", 2*time.Second, "once everything has arrived, wait for copies until none has come for that `time`")
	fs.DurationVar(&s.limit.StopWhenIdle, "stop_when_idle", 10*time.Second, "end when nothing has come for that `time`; 0 is never")
	fs.DurationVar(&s.limit.MaxDuration, "max_duration", 0, "end after that `time`, as 90s or 1h (default: never)")
	fs.StringVar(&s.plotFile, "plot", "", "`file` to draw the latencies into, as SVG")
	s.Define(fs)
	return fs
}

// parseFlags reads verify's flags and Beam's. The error joins everything that could
// not be read.
func parseFlags(args []string) (settings, error) {
	var s settings
	err := s.Parse(ownFlags(&s), args)
	return s, err
}

// validate reports every fault of s at once, in the words of the flags, and reads what
// is expected.
func (s *settings) validate() error {
	var f options.Faults
	for _, err := range program.InFlags(asFlags, sourceConfig(*s).Validate()) {
		f.AddError(err)
	}
	s.expectFaults(&f)
	if s.linger < 0 {
		f.Add("--linger", s.linger, "must be at least 0s")
	}
	program.PrismFaults(&f, "it counts in its own process")
	program.OutputFaults(&f, "plot", s.plotFile)
	program.SameFileFaults(&f, "report", s.Report, "plot", s.plotFile)
	program.SameFileFaults(&f, "report", s.Report, "expected", s.expectedFile)
	program.SameFileFaults(&f, "plot", s.plotFile, "expected", s.expectedFile)
	s.Faults(&f)
	return f.Err()
}

func (s *settings) expectFaults(f *options.Faults) {
	if s.expect.count < 0 || s.expect.count == 0 && s.Given["expect"] {
		f.Add("--expect", s.expect.count, "must be at least 1")
	}
	if s.expectedFile == "" {
		if s.expect.poison {
			f.Add("--require_poison", s.expect.poison, "must have --expected beside it, which tells how much poison there is")
		}
		return
	}
	for _, name := range []string{"expect", "run_id"} {
		if s.Given[name] {
			f.Add("--"+name, "(set)", "must not be given beside --expected, which tells it")
		}
	}
	r, err := load.ReadReport(s.expectedFile)
	if err != nil {
		f.AddError(fmt.Errorf("--expected: %w", err))
		return
	}
	s.expect.report = &r
}

var asFlags = strings.NewReplacer(
	"source.Config.Subscriptions", "--subscription",
)

// plan is what --dry_run prints.
func (s *settings) plan() program.Plan {
	expected := "every number below the highest of its key"
	switch e := s.expect; {
	case e.report != nil:
		expected = fmt.Sprintf("%s messages of run %s", program.Grouped(e.report.Published), e.report.Run)
		if e.report.Poison > 0 && !e.poison {
			expected += fmt.Sprintf(", but for %s that are poison", program.Grouped(e.report.Poison))
		}
	case e.count > 0:
		expected = program.Grouped(e.count) + " messages"
	}
	until := program.Until(s.limit)
	if s.expect.report != nil || s.expect.count > 0 {
		until = "all have arrived, or " + until
	}
	return program.Plan{
		Name:     "verify",
		Would:    "read these subscriptions and acknowledge what comes",
		Settings: [][2]string{{"expected", expected}, {"until", until}},
	}
}
