package loadgen

import (
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
)

func TestFlags_EachFault(t *testing.T) {
	good := []string{"--topic=" + topic}
	for name, tc := range map[string]struct {
		args []string
		want string // whole
	}{
		"nothing":             {nil, `--topic: topic "": must have the form projects/<project>/topics/<id>`},
		"topic":               {[]string{"--topic=projects/p/topics/ab"}, `--topic: topic "projects/p/topics/ab": the id must have 3 to 255 characters, it has 2`},
		"messages":            {append(good, "--messages=-1"), "--messages: -1: must be at least 0"},
		"messages, no number": {append(good, "--messages=many"), `invalid value "many" for flag -messages: parse error`},
		"duration":            {append(good, "--duration=1us"), "--duration: 1µs: must be at least 1ms"},
		"rate":                {append(good, "--rate=-1"), "--rate: -1: must be 0 to 1,000,000,000 messages a second"},
		"rate, no number":     {append(good, "--rate=NaN"), "--rate: NaN: must be 0 to 1,000,000,000 messages a second"},
		"burst":               {append(good, "--burst=0"), "--burst: 0: must be 1 to 1,000,000,000"},
		"burst without rate":  {append(good, "--burst=5", "--rate=0"), "--burst: 5: must be 1 beside --rate=0, which has no pauses"},
		"keys":                {append(good, "--keys=0"), "--keys: 0: must be 1 to 100,000"},
		"too many keys":       {append(good, "--keys=100001"), "--keys: 100001: must be 1 to 100,000"},
		"poison":              {append(good, "--poison=1.5"), "--poison: 1.5: must be a share, 0 to 1"},
		"size":                {append(good, "--size=63"), `--size: "63": must be a number of bytes, or two as 100-5000, each 64 to 9,900,000`},
		"size, the most":      {append(good, "--size=9900001"), `--size: "9900001": must be a number of bytes, or two as 100-5000, each 64 to 9,900,000`},
		"size, turned":        {append(good, "--size=200-100"), `--size: "200-100": must be a number of bytes, or two as 100-5000, each 64 to 9,900,000`},
		"size, open":          {append(good, "--size=200-"), `--size: "200-": must be a number of bytes, or two as 100-5000, each 64 to 9,900,000`},
		"run":                 {append(good, "--run_id=a b"), `--run_id: "a b": must have 1 to 100 of a-z A-Z 0-9 - . _`},
		"run, empty":          {append(good, "--run_id="), `--run_id: "": must not be empty: leave the flag out for its default`},
		"emulator":            {append(good, "--emulator_endpoint=here"), `--emulator_endpoint: "here": must be host:port`},
		"two endpoints":       {append(good, "--emulator_endpoint=h:1", "--pubsub_endpoint=h:2"), `--pubsub_endpoint: "h:2": must be empty beside --emulator_endpoint`},
		"key and emulator":    {append(good, "--emulator_endpoint=h:1", "--service_account_key_file=k"), "--service_account_key_file: (set): must be empty beside --emulator_endpoint, which takes no credentials"},
		"runner":              {append(good, "--runner=direct"), "--runner: direct: must be prism: one process keeps the rate and the count"},
		"report":              {append(good, "--report=/no/such/r.json"), `--report: "/no/such/r.json": must be in a directory that exists`},
		"unknown":             {append(good, "--rates=1"), "flag provided but not defined: -rates"},
		"argument":            {append(good, "now"), `unexpected argument: "now"`},
	} {
		t.Run(name, func(t *testing.T) {
			programtest.WantMisuse(t, "loadgen", Run, tc.args, tc.want)
		})
	}
}

func TestFlags_HelpIsAManual(t *testing.T) {
	programtest.WantManual(t, "loadgen", Run, "Loadgen publishes", "\nHOW MUCH\n  --messages n\n", "--rate messages\n", "(default 1000)")
}

func TestFlags_EachRunHasANameOfItsOwn(t *testing.T) {
	one, err := parseFlags(nil)
	other, otherErr := parseFlags(nil)
	if err != nil || otherErr != nil || one.stream.Run == other.stream.Run || !isRunID(one.stream.Run) {
		t.Errorf("%q, %q", one.stream.Run, other.stream.Run)
	}
}
