package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// settings are what the flags say.
type settings struct {
	subscriptions []string
	topic         string
	connection    options.Connection
	limit         options.Limit
	dropKeys      bool  // publish a message that has an ordering key without it
	total         int64 // messages after which the relay ends, 0 where nobody knows

	embedded         bool
	embeddedMessages int

	report  string
	verbose bool
	help    bool

	given map[string]bool // the flags that were given
}

// ownFlags defines the relay's flags. Beam has a flag --endpoint already, that of
// a job server.
func ownFlags(s *settings) *flag.FlagSet {
	fs := flag.NewFlagSet("relay", flag.ContinueOnError)
	fs.Func("input_subscriptions", "comma-separated `names` of the subscriptions to read, each projects/<project>/subscriptions/<id>", func(v string) error {
		for name := range strings.SplitSeq(v, ",") {
			if name = strings.TrimSpace(name); name != "" {
				s.subscriptions = append(s.subscriptions, name)
			}
		}
		return nil
	})
	fs.StringVar(&s.topic, "output_topic", "", "`name` of the topic to publish to, projects/<project>/topics/<id>")
	fs.StringVar(&s.connection.EmulatorEndpoint, "emulator_endpoint", "", "`host:port` of an emulator, in plaintext and without credentials (default: the service)")
	fs.StringVar(&s.connection.Endpoint, "pubsub_endpoint", "", "`host:port` of a regional endpoint of the service (default: the global one)")
	fs.StringVar(&s.connection.ServiceAccountKeyFile, "service_account_key_file", "", "`path` of a service account's JSON key (default: application default credentials)")
	fs.Int64Var(&s.limit.MaxMessages, "max_messages", 0, "end after `n` messages (default: never)")
	fs.DurationVar(&s.limit.MaxDuration, "max_duration", 0, "end after that `time`, as 90s or 1h (default: never)")
	fs.DurationVar(&s.limit.StopWhenIdle, "stop_when_idle", 0, "end when nothing has come for that `time` (default: never)")
	fs.BoolVar(&s.dropKeys, "drop_ordering_keys", false, "publish messages that have an ordering key without it, in any order (default: fail)")
	fs.BoolVar(&s.embedded, "embedded", false, "relay messages of the program's own through a server in its process, and check that every one arrived")
	fs.IntVar(&s.embeddedMessages, "embedded_messages", 10_000, "how many `messages` --embedded relays")
	fs.StringVar(&s.report, "report", "", "`file` to write the result to, as JSON")
	fs.BoolVar(&s.verbose, "verbose", false, "show Beam's log of level info too")
	return fs
}

// A beamFlag is a flag of Beam's, which lives in the program's global flag set:
// to be set there makes it known to all of Beam.
type beamFlag struct{ *flag.Flag }

func (f beamFlag) String() string {
	if f.Flag == nil {
		return "" // asked of a zero value by package flag
	}
	return f.Value.String()
}

func (f beamFlag) Set(v string) error { return flag.Set(f.Name, v) }

func (f beamFlag) IsBoolFlag() bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// parseFlags reads the relay's flags and Beam's. The relay's live in a set of
// their own, so that it can run more than once in a process. The error joins
// everything that could not be read.
func parseFlags(args []string) (settings, error) {
	s := settings{given: make(map[string]bool)}
	fs := ownFlags(&s)
	flag.VisitAll(func(f *flag.Flag) { fs.Var(beamFlag{f}, f.Name, f.Usage) })
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	var faults []error
	for len(args) > 0 {
		err := fs.Parse(args)
		args = fs.Args()
		switch {
		case errors.Is(err, flag.ErrHelp):
			s.help = true
		case err != nil:
			faults = append(faults, err)
		case len(args) > 0:
			faults = append(faults, fmt.Errorf("unexpected argument: %q", args[0]))
			args = args[1:]
		}
	}
	fs.Visit(func(f *flag.Flag) { s.given[f.Name] = true })
	s.total = s.limit.MaxMessages
	return s, errors.Join(faults...)
}

// validate reports every fault of s at once, in the words of the flags.
func (s settings) validate() error {
	var f options.Faults
	if s.embedded {
		s.embeddedFaults(&f)
	} else {
		for _, err := range configFaults(s) {
			f.AddError(err)
		}
		if onDirect() && !s.limit.IsSet() {
			f.Add("--runner", *runners.Runner, "must have one of --max_messages, --max_duration and --stop_when_idle beside it: the direct runner runs a pipeline that ends")
		}
		if s.given["embedded_messages"] {
			f.Add("--embedded_messages", s.embeddedMessages, "must have --embedded beside it")
		}
	}
	if dir := filepath.Dir(s.report); s.report != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			f.Add("--report", fmt.Sprintf("%q", s.report), "must be in a directory that exists")
		}
	}
	return f.Err()
}

func (s settings) embeddedFaults(f *options.Faults) {
	for _, name := range []string{"input_subscriptions", "output_topic", "emulator_endpoint", "pubsub_endpoint", "service_account_key_file", "max_messages", "max_duration", "stop_when_idle", "drop_ordering_keys"} {
		if s.given[name] {
			f.Add("--"+name, "(set)", "must not be given beside --embedded, which brings a server and messages of its own")
		}
	}
	if s.embeddedMessages < 1 {
		f.Add("--embedded_messages", s.embeddedMessages, "must be at least 1")
	}
	if !runsHere() {
		f.Add("--runner", *runners.Runner, "must be prism or direct beside --embedded: workers elsewhere do not reach a server in this process")
	}
}

// runnerName is the chosen runner's name; Beam takes two of each.
func runnerName() string {
	switch name := *runners.Runner; name {
	case "", "PrismRunner":
		return "prism"
	case "DirectRunner":
		return "direct"
	default:
		return name
	}
}

func onDirect() bool { return runnerName() == "direct" }

// runsHere reports whether the workers are in this process.
func runsHere() bool { return runnerName() == "prism" || onDirect() }

// configFaults are the faults of the read and the write that s asks for. The
// rules are theirs; the names of fields become those of flags.
func configFaults(s settings) []error {
	var out []error
	seen := make(map[string]bool)
	for _, err := range []error{sourceConfig(s).Validate(), sinkConfig(s).Validate()} {
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		for _, fault := range joined.Unwrap() {
			if text := asFlags.Replace(fault.Error()); !seen[text] {
				seen[text] = true
				out = append(out, errors.New(text))
			}
		}
	}
	return out
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

func printUsage(w io.Writer) {
	fmt.Fprint(w, `relay moves messages from Pub/Sub subscriptions to a topic.

  relay --input_subscriptions=projects/p/subscriptions/in --output_topic=projects/p/topics/out
  relay --embedded

`)
	fs := ownFlags(new(settings))
	fs.SetOutput(w)
	fs.PrintDefaults()
	var beams []string
	flag.VisitAll(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			beams = append(beams, "--"+f.Name)
		}
	})
	slices.Sort(beams)
	fmt.Fprintf(w, "\nBeam's flags, --runner (default prism) the first of them, are taken too:\n%s\n", wrap(beams, 100))
}

// wrap joins words into indented lines of about that width.
func wrap(words []string, width int) string {
	var b strings.Builder
	column := width
	for _, w := range words {
		if column+len(w) > width {
			b.WriteString("\n ")
			column = 2
		}
		b.WriteString(" " + w)
		column += 1 + len(w)
	}
	return strings.TrimPrefix(b.String(), "\n")
}
