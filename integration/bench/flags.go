package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// flags are what the command line asks for.
type flags struct {
	sizes      []int
	topics     []int
	keys       []int
	splits     []int
	backlogs   []int
	messages   int
	duration   time.Duration // instead of messages, unless zero
	warmup     int
	rounds     int
	latency    time.Duration
	matrix     []string // axes
	work       []work
	only       *regexp.Regexp
	with       []settings
	clientWith []settings
	example    bool
	report     string
	cpuProfile string
	memProfile string
}

// matrixDuration is how long a run of a matrix takes: its loads differ too much
// for one number of messages.
const matrixDuration = 5 * time.Second

func parse(args []string, stderr io.Writer) (flags, error) {
	f := flags{
		sizes: []int{1024}, topics: []int{1}, keys: []int{0}, splits: []int{1}, backlogs: []int{0},
		work: works, only: regexp.MustCompile(""),
	}
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(stderr)
	f.defineLoad(set)
	f.defineContestants(set)
	set.IntVar(&f.messages, "messages", 300_000, "how many `messages` a contestant moves in a round")
	set.DurationVar(&f.duration, "duration", 0, "about how `long` a contestant takes in a round: the number of messages follows from a trial; and how long a situation of live is measured (default 10s)")
	set.IntVar(&f.warmup, "warmup", 20_000, "how many `messages` it moves before, uncounted")
	set.IntVar(&f.rounds, "rounds", 5, "how many `times` every contestant runs")
	set.StringVar(&f.report, "report", "", "`file` to write every single figure to, as JSON")
	set.StringVar(&f.cpuProfile, "cpuprofile", "", "`directory` for a CPU profile of every run")
	set.StringVar(&f.memProfile, "memprofile", "", "`directory` for a profile of the allocations of every run")
	if err := set.Parse(args); err != nil {
		return flags{}, err
	}
	if set.NArg() > 0 {
		return flags{}, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	given := make(map[string]bool)
	set.Visit(func(g *flag.Flag) { given[g.Name] = true })
	f.matrixDefaults(given)
	return f, f.validate(given)
}

// defineLoad defines what the messages are like.
func (f *flags) defineLoad(set *flag.FlagSet) {
	ints := func(name string, to *[]int, usage string) {
		set.Func(name, usage, func(v string) (err error) {
			*to, err = parseInts(v)
			return err
		})
	}
	ints("size", &f.sizes, "comma-separated `bytes` of data of a message (default 1024)")
	ints("topics", &f.topics, "comma-separated `numbers` of topics that a sink publishes to in turn (default 1)")
	ints("keys", &f.keys, "comma-separated `numbers` of ordering keys that messages have in turn; 0 for none (default 0)")
	ints("splits", &f.splits, "comma-separated `numbers` of splits that a source reads with, and of streams that a client does (default 1)")
	ints("backlog", &f.backlogs, "comma-separated `numbers` of messages that a source finds and reads, instead of --messages (default 0: --messages)")
	set.DurationVar(&f.latency, "latency", 0, "the `time` that the server takes to answer a publish request")
	set.Func("matrix", "comma-separated `axes`, of size, topics, keys, latency for a sink and size, splits, backlog, keys for a source, or all: vary each by itself and print a table for it", func(v string) (err error) {
		f.matrix, err = parseAxes(v)
		return err
	})
}

// defineContestants defines who runs.
func (f *flags) defineContestants(set *flag.FlagSet) {
	set.Func("work", "comma-separated `kinds` of work: relay, source, sink, live (default the first three; source with splits or a backlog, else sink with many topics, keys or --matrix)", func(v string) error {
		return f.parseWork(v)
	})
	set.Func("only", "a `regexp`: only contestants whose work and name, as \"relay pubsubio\", match", func(v string) (err error) {
		f.only, err = regexp.Compile(v)
		return err
	})
	set.BoolVar(&f.example, "example", false, "have Beam's own example of a read run as well: it takes 5 s for a thousand messages and never has more acknowledged")
	set.Func("with", "comma-separated `Option=value` pairs: have this module run with these options too; may be repeated", func(v string) error {
		s := settings(strings.Split(v, ","))
		f.with = append(f.with, s)
		_, _, err := s.ours()
		return err
	})
	set.Func("client", "comma-separated `Setting=value` pairs, of PublishSettings, ReceiveSettings or Window: have the client run with these too; may be repeated", func(v string) error {
		s := settings(strings.Split(v, ","))
		f.clientWith = append(f.clientWith, s)
		_, err := s.client(load{Topics: 1, Splits: 1})
		return err
	})
}

// matrixDefaults are those of flags that were not given: only a sink has topics,
// only a source splits and a backlog, and a relay no keys.
func (f *flags) matrixDefaults(given map[string]bool) {
	switch {
	case given["work"]:
	case f.any(load.ofSource):
		f.work = []work{fromTopic}
	case f.any(load.ofSink) || f.any(load.keyed) || slices.Equal(f.matrix, []string{allAxes}):
		f.work = []work{toTopic}
	}
	if slices.Equal(f.matrix, []string{allAxes}) && len(f.work) == 1 && axesOfWorks[f.work[0]] != nil {
		f.matrix = axesOfWorks[f.work[0]]
	}
	if len(f.matrix) > 0 && !given["messages"] && !given["duration"] {
		f.duration = matrixDuration
	}
}

// any is true when a load that is to be run is so.
func (f *flags) any(is func(load) bool) bool { return slices.ContainsFunc(f.loads(), is) }

func (l load) ofSink() bool   { return l.Topics > 1 }
func (l load) keyed() bool    { return l.Keys > 0 }
func (l load) ofSource() bool { return l.Splits > 1 || l.Backlog > 0 }

func (f *flags) validate(given map[string]bool) error {
	var faults options.Faults
	f.loadFaults(&faults)
	if f.messages < 1 {
		faults.Add("--messages", f.messages, "must be at least 1")
	}
	if f.duration < 0 || given["duration"] && given["messages"] {
		faults.Add("--duration", f.duration, "must be positive, and not beside --messages")
	}
	if f.warmup < 0 {
		faults.Add("--warmup", f.warmup, "must not be negative")
	}
	if f.rounds < 1 {
		faults.Add("--rounds", f.rounds, "must be at least 1")
	}
	for _, dir := range []string{f.cpuProfile, f.memProfile} {
		if info, err := os.Stat(dir); dir != "" && (err != nil || !info.IsDir()) {
			faults.Add("profile directory", dir, "must exist")
		}
	}
	if len(f.contestants()) == 0 {
		faults.Add("--only", f.only, "must match a contestant")
	}
	return faults.Err()
}

func (f *flags) loadFaults(faults *options.Faults) {
	within := func(flag string, values []int, least, most int) {
		for _, n := range values {
			if n < least || n > most {
				faults.Add(flag, n, fmt.Sprintf("must be %d to %d", least, most))
			}
		}
	}
	within("--size", f.sizes, 1, 9_000_000)
	within("--topics", f.topics, 1, 10_000)
	within("--keys", f.keys, 0, 1_000_000)
	within("--splits", f.splits, 1, 90)
	within("--backlog", f.backlogs, 0, mostMessages)
	if f.any(func(l load) bool { return l.keyed() && l.Splits > 1 }) {
		faults.Add("--splits", f.splits, "must be 1 beside --keys: a source reads a key over one stream")
	}
	if f.latency < 0 {
		faults.Add("--latency", f.latency, "must not be negative")
	}
	if len(f.matrix) > 0 && len(f.crossed()) > 1 {
		faults.Add("--matrix", strings.Join(f.matrix, ","), "must be beside one size, and one number each of topics, keys, splits and backlog: its axes vary them")
	}
	f.workFaults(faults)
}

// workFaults are those of loads that are not for every work.
func (f *flags) workFaults(faults *options.Faults) {
	if f.any(load.ofSink) && !slices.Equal(f.work, []work{toTopic}) {
		faults.Add("--work", f.work, "must be sink where there are several topics")
	}
	if f.any(load.ofSource) && !slices.Equal(f.work, []work{fromTopic}) {
		faults.Add("--work", f.work, "must be source where there are splits or a backlog")
	}
	if (f.any(load.keyed) || len(f.matrix) > 0) && !slices.Equal(f.work, []work{toTopic}) && !slices.Equal(f.work, []work{fromTopic}) {
		faults.Add("--work", f.work, "must be sink or source where there are keys or a matrix")
	}
}

func parseInts(v string) ([]int, error) {
	var all []int
	for s := range strings.SplitSeq(v, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func (f *flags) parseWork(v string) error {
	f.work = nil
	for s := range strings.SplitSeq(v, ",") {
		w := work(strings.TrimSpace(s))
		if !w.known() {
			return fmt.Errorf("%q is no work: want relay, source, sink or live", s)
		}
		f.work = append(f.work, w)
	}
	return nil
}
