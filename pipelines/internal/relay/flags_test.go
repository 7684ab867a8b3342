package relay

import (
	"bytes"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
)

func TestFlags_ReportsEveryFaultAtOnce(t *testing.T) {
	o := runRelay(t.Context(), t,
		"--input_subscriptions=projects/p/subscriptions/ab,"+inSub+","+inSub,
		"--output_topic=out",
		"--max_messages=-1",
		"--stop_when_idle=1us",
		"--max_duration=soon",
		"--emulator_endpoint=here",
		"--pubsub_endpoint=there:1",
		"--service_account_key_file=/key.json",
		"--embedded_messages=3",
		"--parallelism=many",
		"--no_such_flag",
		"argument",
		"--runner=direct",
	)
	o.MustEnd(t, program.ExitUsage)
	got := strings.Split(strings.TrimSpace(o.Stderr), "\n")
	want := []string{
		`invalid value "soon" for flag -max_duration: parse error`,
		`invalid value "many" for flag -parallelism: parse error`,
		`flag provided but not defined: -no_such_flag`,
		`unexpected argument: "argument"`,
		`--input_subscriptions[0]: subscription "projects/p/subscriptions/ab": the id must have 3 to 255 characters, it has 2`,
		`--input_subscriptions[2]: "projects/p/subscriptions/input": must not be named twice: its messages are shared between the two, not doubled`,
		`--emulator_endpoint: "here": must be host:port`,
		`--pubsub_endpoint: "there:1": must be empty beside --emulator_endpoint`,
		`--service_account_key_file: (set): must be empty beside --emulator_endpoint, which takes no credentials`,
		`--max_messages: -1: must be at least 0`,
		`--stop_when_idle: 1µs: must be at least 1ms`,
		`--output_topic: topic "out": must have the form projects/<project>/topics/<id>`,
		`--embedded_messages: 3: must have --embedded beside it`,
		`relay --help lists the flags.`,
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("missing: %s", line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d:\n%s", len(got), len(want), o.Stderr)
	}
	if o.Stdout != "" {
		t.Errorf("stdout:\n%s", o.Stdout)
	}
}

func TestFlags_EachFault(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing": {nil,
			"--input_subscriptions: []: must name at least one subscription\n--output_topic: topic \"\": must have the form"},
		"direct without an end": {[]string{"--input_subscriptions=" + inSub, "--output_topic=" + outTopic, "--runner=direct"},
			"--runner: direct: must have one of --max_messages, --max_duration and --stop_when_idle beside it"},
		"embedded and a topic": {[]string{"--embedded", "--output_topic=" + outTopic},
			"--output_topic: (set): must not be given beside --embedded"},
		"embedded with none": {[]string{"--embedded", "--embedded_messages=0"},
			"--embedded_messages: 0: must be at least 1"},
		"embedded elsewhere": {[]string{"--embedded", "--runner=dataflow"},
			"--runner: dataflow: must be prism or direct beside --embedded"},
		"policy": {[]string{"--failure_policy=retry", "--input_subscriptions=" + inSub, "--output_topic=" + outTopic},
			`--failure_policy: "retry": must be fail, drop or dead_letter`},
		"policy without a topic": {[]string{"--failure_policy=dead_letter", "--input_subscriptions=" + inSub, "--output_topic=" + outTopic},
			"--failure_policy: dead_letter: must have --dead_letter_topic beside it"},
		"dead letters nobody sends": {[]string{"--failure_policy=drop", "--dead_letter_topic=" + outTopic, "--input_subscriptions=" + inSub, "--output_topic=" + outTopic},
			"must not be given beside --failure_policy=drop"},
		"dead letters nowhere": {[]string{"--dead_letter_topic=x", "--input_subscriptions=" + inSub, "--output_topic=" + outTopic},
			`--dead_letter_topic: topic "x": must have the form projects/<project>/topics/<id>`},
		"dead letters in a circle": {[]string{"--dead_letter_topic=" + outTopic, "--input_subscriptions=" + inSub, "--output_topic=" + outTopic},
			"--dead_letter_topic"},
		"both ways with keys": {[]string{"--ordering", "--drop_ordering_keys", "--input_subscriptions=" + inSub, "--output_topic=" + outTopic},
			"--ordering: true: must not be given beside --drop_ordering_keys"},
		"position": {[]string{"--start_position=yesterday", "--input_subscriptions=" + inSub, "--output_topic=" + outTopic},
			`invalid value "yesterday" for flag -start_position: must be earliest, latest or a time as 2026-11-30T12:00:00Z`},
		"subscribe to nothing": {[]string{"--create_subscriptions=x", "--input_subscriptions=" + inSub, "--output_topic=" + outTopic},
			`--create_subscriptions: topic "x": must have the form projects/<project>/topics/<id>`},
		// A subscription of the output topic reads what is published, for ever; the check of
		// those that were found could not see one that the relay was about to create.
		"subscribe to the output": {[]string{"--create_subscriptions=" + outTopic, "--input_subscriptions=" + inSub, "--output_topic=" + outTopic},
			`--create_subscriptions: "` + outTopic + `": must name another topic than --output_topic: every message would come round again`},
		"subscribe to the output of some": {[]string{"--create_subscriptions=" + outTopic, "--input_subscriptions=" + inSub, "--output_topic=" + outTopic, "--output_topic_attribute=to"},
			`--create_subscriptions: "` + outTopic + `": must name another topic than --output_topic: every message would come round again`},
		"subscribe to dead letters": {[]string{"--create_subscriptions=" + lettersName, "--input_subscriptions=" + inSub, "--output_topic=" + outTopic, "--dead_letter_topic=" + lettersName},
			`--create_subscriptions: "` + lettersName + `": must name another topic than --dead_letter_topic: every dead letter would be read again`},
		"topic beside an attribute": {[]string{"--output_topic_attribute=to", "--input_subscriptions=" + inSub, "--output_topic=x"},
			`--output_topic: topic "x": must have the form projects/<project>/topics/<id>`},
		"filter": {[]string{"--filter=attributes.region = eu", "--input_subscriptions=" + inSub, "--output_topic=" + outTopic},
			`--filter: attributes.region = eu: at character 21, eu: here must be a string in double quotes, as in attributes.event = "order"`},
		"embedded and a filter": {[]string{"--embedded", "--filter=attributes:n"},
			"--filter: (set): must not be given beside --embedded"},
		"report nowhere": {[]string{"--embedded", "--report=/no/such/place.json"},
			`--report: "/no/such/place.json": must be in a directory that exists`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { *runners.Runner = "" })
			var stdout, stderr bytes.Buffer
			if code := Run(t.Context(), "", tc.args, &stdout, &stderr); code != program.ExitUsage || !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("exit code %d:\n%s\nwant %s", code, stderr.String(), tc.want)
			}
		})
	}
}

func TestFlags_HelpIsAManual(t *testing.T) {
	programtest.WantManual(t, "relay", Run, "\nFILTER\n", "--input_subscriptions names", "--stop_when_idle time", "(default 10000)")
}

// The relay's flags are of one run; Beam's, which are the process's, are set.
func TestFlags_OfOneRunAreNotThoseOfTheNext(t *testing.T) {
	t.Cleanup(func() { *runners.Runner = "" })
	first, err := parseFlags([]string{"--max_messages", "7", "-embedded", "--runner", "direct"})
	if err != nil || first.limit.MaxMessages != 7 || !first.embedded || !first.Given["max_messages"] || !program.OnDirect() {
		t.Errorf("%+v, %v", first, err)
	}
	second, err := parseFlags([]string{"--input_subscriptions", " a, b,,c "})
	if err != nil || second.limit.IsSet() || second.embedded || len(second.Given) != 1 {
		t.Errorf("%+v, %v", second, err)
	}
	if !slices.Equal(second.subscriptions, []string{"a", "b", "c"}) {
		t.Errorf("subscriptions %q", second.subscriptions)
	}
}

// Beam takes two names of each runner: a rule that knows one of them only is a
// rule that half of the users do not get.
func TestFlags_RunnersHaveTwoNames(t *testing.T) {
	t.Cleanup(func() { *runners.Runner = "" })
	for name, want := range map[string]struct{ direct, here bool }{
		"": {false, true}, "prism": {false, true}, "PrismRunner": {false, true},
		"direct": {true, true}, "DirectRunner": {true, true},
		"dataflow": {}, "DataflowRunner": {}, "flink": {}, "FlinkRunner": {},
	} {
		*runners.Runner = name
		if program.OnDirect() != want.direct || program.RunsHere() != want.here {
			t.Errorf("--runner=%s: direct %v, here %v, want %+v", name, program.OnDirect(), program.RunsHere(), want)
		}
	}
}

func TestFlags_DryRunChecksAndMovesNothing(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 10)
	t.Cleanup(func() { _ = flag.Set("dry_run", "false") })
	o := runRelay(t.Context(), t, relayArgs(srv, "--dry_run", "--max_messages=10")...)
	o.MustEnd(t, program.ExitDone)
	want := `relay would move messages from these subscriptions to this topic. This is a dry run: nothing is done.

  subscription   projects/p/subscriptions/input
                 exists; pubsub.subscriptions.consume is granted
  topic          projects/p/topics/out
                 exists; pubsub.topics.publish is granted
  until          10 messages have come, or it is interrupted
  ordering keys  a message with one fails the relay
`
	if o.Stdout != want || srv.Stats(inSub).Delivered != 0 {
		t.Errorf("printed:\n%swant:\n%s", o.Stdout, want)
	}
	if err := srv.DeleteTopic(outTopic); err != nil {
		t.Fatal(err)
	}
	o = runRelay(t.Context(), t, relayArgs(srv, "--dry_run", "--max_messages=10")...)
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "relay cannot run as it is told:\n--output_topic: topic projects/p/topics/out does not exist") {
		t.Errorf("said:\n%s", o.Stderr)
	}
}
