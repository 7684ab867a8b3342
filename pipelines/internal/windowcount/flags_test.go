package windowcount

import (
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
)

func TestFlags_EachFault(t *testing.T) {
	good := []string{"--input_subscriptions=" + sub, "--by_attribute=region"}
	for name, tc := range map[string]struct {
		args []string
		want string // whole
	}{
		"nothing": {nil, "--input_subscriptions: []: must name at least one subscription\n" +
			`--by_attribute: "": must be given, or --by_ordering_key`},
		"two labels":         {append(good, "--by_ordering_key"), `--by_attribute: "region": must not be given beside --by_ordering_key`},
		"window":             {append(good, "--window=1us"), "--window: 1µs: must be whole milliseconds, at least 1ms"},
		"window, nothing":    {append(good, "--window=0s"), "--window: 0s: must be whole milliseconds, at least 1ms"},
		"every":              {append(good, "--every=2m"), "--every: 2m0s: must be whole milliseconds, at least 1ms and at most --window, or some messages would lie in no window"},
		"every, negative":    {append(good, "--every=-1s"), "--every: -1s: must be whole milliseconds, at least 1ms and at most --window, or some messages would lie in no window"},
		"too many windows":   {append(good, "--window=24h", "--every=1s"), "--every: 1s: must be at least a 1000th of --window: each message counts in that many windows"},
		"late":               {append(good, "--late=never"), `--late: "never": must be drop, discard or accumulate`},
		"lateness with drop": {append(good, "--allowed_lateness=1m"), "--allowed_lateness: 1m0s: must have --late=discard or --late=accumulate beside it"},
		"late without it":    {append(good, "--late=discard"), "--allowed_lateness: 0s: must be at least 1ms beside --late=discard"},
		"bad timestamp":      {append(good, "--timestamp_attribute=at", "--bad_timestamp=ignore"), "--bad_timestamp: ignore: must be fail, drop or publish_time"},
		"no timestamp":       {append(good, "--bad_timestamp=drop"), "--bad_timestamp: drop: must have --timestamp_attribute beside it: every message has a publish time"},
		"lag":                {append(good, "--watermark_lag=-1s"), "--watermark_lag: -1s: must be at least 1ms"},
		"output":             {append(good, "--output_topic=out"), `--output_topic: topic "out": must have the form projects/<project>/topics/<id>`},
		"top":                {append(good, "--top=7"), "--top: 7: must be 1 to 6: more cannot be told apart"},
		"plot":               {append(good, "--plot=/no/such/p.svg"), `--plot: "/no/such/p.svg": must be in a directory that exists`},
		"report":             {append(good, "--report=/no/such/r.json"), `--report: "/no/such/r.json": must be in a directory that exists`},
		"report on plot":     {append(good, "--plot=new", "--report=./new"), `--report: "./new": must be another file than that of --plot`},
		"messages":           {append(good, "--max_messages=-1"), "--max_messages: -1: must be at least 0"},
		"duration":           {append(good, "--max_duration=1us"), "--max_duration: 1µs: must be at least 1ms"},
		"idle":               {append(good, "--stop_when_idle=1us"), "--stop_when_idle: 1µs: must be at least 1ms"},
		"emulator":           {append(good, "--emulator_endpoint=here"), `--emulator_endpoint: "here": must be host:port`},
		"two endpoints":      {append(good, "--emulator_endpoint=h:1", "--pubsub_endpoint=h:2"), `--pubsub_endpoint: "h:2": must be empty beside --emulator_endpoint`},
		"runner":             {append(good, "--runner=direct"), "--runner: direct: must be prism: the table and the plot are in its own process"},
		"unknown":            {append(good, "--windows=1"), "flag provided but not defined: -windows"},
	} {
		t.Run(name, func(t *testing.T) {
			programtest.WantMisuse(t, "windowcount", Run, tc.args, tc.want)
		})
	}
}

func TestFlags_HelpIsAManual(t *testing.T) {
	programtest.WantManual(t, "windowcount", Run, "Windowcount counts", "\nLATE MESSAGES\n", "\nIN WHICH WINDOWS\n", "(default 1m0s)")
}
