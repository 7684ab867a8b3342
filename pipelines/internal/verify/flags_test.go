package verify

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
)

func TestFlags_EachFault(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	sent := reported(t, stream, 3)
	good := []string{"--subscription=" + sub}
	for name, tc := range map[string]struct {
		args []string
		want string // whole
	}{
		"nothing":             {nil, "--subscription: []: must name at least one subscription"},
		"subscription":        {[]string{"--subscription=projects/p/subscriptions/1ab"}, `--subscription[0]: subscription "projects/p/subscriptions/1ab": the id must start with a letter`},
		"expect":              {append(good, "--expect=0"), "--expect: 0: must be at least 1"},
		"expect, negative":    {append(good, "--expect=-5"), "--expect: -5: must be at least 1"},
		"two expectations":    {append(good, "--expected="+sent, "--expect=3"), "--expect: (set): must not be given beside --expected, which tells it"},
		"run and expectation": {append(good, "--expected="+sent, "--run_id=r"), "--run_id: (set): must not be given beside --expected, which tells it"},
		"no such file":        {append(good, "--expected="+dir+"/none"), "--expected: open " + dir + "/none: no such file or directory"},
		"no report":           {append(good, "--expected="+broken), "--expected: is no report of loadgen: it names no run"},
		"poison":              {append(good, "--require_poison"), "--require_poison: true: must have --expected beside it, which tells how much poison there is"},
		"linger":              {append(good, "--linger=-1s"), "--linger: -1s: must be at least 0s"},
		"idle":                {append(good, "--stop_when_idle=1us"), "--stop_when_idle: 1µs: must be at least 1ms"},
		"duration":            {append(good, "--max_duration=-1s"), "--max_duration: -1s: must be at least 1ms"},
		"plot":                {append(good, "--plot=/no/such/p.svg"), `--plot: "/no/such/p.svg": must be in a directory that exists`},
		"report":              {append(good, "--report="+dir), `--report: "` + dir + `": must be a file, it is a directory`},
		"report on expected":  {append(good, "--expected="+sent, "--report="+sent), `--report: "` + sent + `": must be another file than that of --expected`},
		"plot on expected":    {append(good, "--expected="+sent, "--plot="+sent), `--plot: "` + sent + `": must be another file than that of --expected`},
		"report on plot":      {append(good, "--plot="+dir+"/new", "--report="+dir+"/new"), `--report: "` + dir + `/new": must be another file than that of --plot`},
		"emulator":            {append(good, "--emulator_endpoint=here"), `--emulator_endpoint: "here": must be host:port`},
		"two endpoints":       {append(good, "--emulator_endpoint=h:1", "--pubsub_endpoint=h:2"), `--pubsub_endpoint: "h:2": must be empty beside --emulator_endpoint`},
		"key and emulator":    {append(good, "--emulator_endpoint=h:1", "--service_account_key_file=k"), "--service_account_key_file: (set): must be empty beside --emulator_endpoint, which takes no credentials"},
		"runner":              {append(good, "--runner=dataflow"), "--runner: dataflow: must be prism: it counts in its own process"},
		"unknown":             {append(good, "--expects=1"), "flag provided but not defined: -expects"},
	} {
		t.Run(name, func(t *testing.T) {
			programtest.WantMisuse(t, "verify", Run, tc.args, tc.want)
		})
	}
}

func TestFlags_HelpIsAManual(t *testing.T) {
	programtest.WantManual(t, "verify", Run, "Verify reads", "\nWHEN TO END\n", "--stop_when_idle time\n", "(default 10s)")
}
