package program

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"

	_ "github.com/beam-pubsub/beam-pubsub-go/pubsubio" // Beam's flags
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// parsed is a program with a flag of its own.
type parsed struct {
	Common
	names []string
	n     int
}

func (p *parsed) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	NamesVar(fs, &p.names, "names", "comma-separated `names`")
	fs.IntVar(&p.n, "n", 7, "a `number`")
	p.Define(fs)
	return fs
}

func parseAll(args ...string) (*parsed, error) {
	p := new(parsed)
	return p, p.Parse(p.flags(), args)
}

func TestParse_ReportsEveryFaultAtOnce(t *testing.T) {
	_, err := parseAll("--n=x", "stray", "--no_such_flag", "---n=1", "--=2", "--parallelism=many", "--names=a")
	want := []string{
		`invalid value "x" for flag -n: parse error`,
		`unexpected argument: "stray"`,
		`flag provided but not defined: -no_such_flag`,
		`bad flag syntax: ---n=1`,
		`bad flag syntax: --=2`,
		`invalid value "many" for flag -parallelism: parse error`,
	}
	if err == nil || !slices.Equal(strings.Split(err.Error(), "\n"), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestParse_FlagsOfTheProgramAndOfBeam(t *testing.T) {
	t.Cleanup(func() { *runners.Runner = "" })
	p, err := parseAll("--names", " a, b,,c ", "--names=d", "-n=3", "--runner=DirectRunner", "--emulator_endpoint=h:1", "--report=r.json", "--verbose")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.names, []string{"a", "b", "c", "d"}) || p.n != 3 || p.Connection.EmulatorEndpoint != "h:1" || p.Report != "r.json" || !p.Verbose {
		t.Errorf("%+v", p)
	}
	if !OnDirect() || !RunsHere() || !p.Given["runner"] || !p.Given["n"] || p.Given["dry_run"] {
		t.Errorf("runner %s, given %v", Runner(), p.Given)
	}
	if again, err := parseAll("--help"); err != nil || !again.Help || again.n != 7 || again.Verbose || len(again.names) > 0 {
		t.Errorf("the flags of one run are those of the next: %+v, %v", again, err)
	}
}

// Beam has a flag of that name, too: Dataflow's runner must not submit a job that was
// to be looked at.
func TestParse_DryRunIsBeamsToo(t *testing.T) {
	beams := flag.Lookup("dry_run")
	if beams == nil {
		t.Fatal("Beam has no such flag any more")
	}
	for _, args := range [][]string{{"--dry_run"}, nil} {
		p, err := parseAll(args...)
		if want := len(args) > 0; err != nil || p.DryRun != want || (beams.Value.String() == "true") != want {
			t.Errorf("%v: %v, Beam's %v, %v", args, p.DryRun, beams.Value, err)
		}
	}
}

// A rule that knows one of a runner's two names only is a rule that half of the users
// do not get.
func TestRunner_HasTwoNames(t *testing.T) {
	t.Cleanup(func() { *runners.Runner = "" })
	for name, want := range map[string]string{
		"": "prism", "prism": "prism", "PrismRunner": "prism", "direct": "direct", "DirectRunner": "direct",
		"dataflow": "dataflow", "DataflowRunner": "dataflow", "flink": "flink",
	} {
		*runners.Runner = name
		var f options.Faults
		PrismFaults(&f, "because")
		if Runner() != want || (f.Err() == nil) != (want == "prism") {
			t.Errorf("--runner=%s is %s, want %s; %v", name, Runner(), want, f.Err())
		}
	}
}

// A flag that is there and empty, as of a shell's variable that is not set, is not one that
// is left out.
func TestCommon_EmptyFlagsAreFaults(t *testing.T) {
	p, err := parseAll("--emulator_endpoint=", "--report=", "--names=")
	if err != nil {
		t.Fatal(err)
	}
	var f options.Faults
	p.Faults(&f)
	want := "--emulator_endpoint: \"\": must not be empty: leave the flag out for its default\n--report: \"\": must not be empty: leave the flag out for its default"
	if err := f.Err(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// The key would be gone, and nobody has another copy.
func TestCommon_NoOutputIsTheKey(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"report", "plot"} {
		p := new(parsed)
		fs := p.flags()
		fs.String("plot", "", "a `file`")
		if err := p.Parse(fs, []string{"--" + name + "=" + key, "--service_account_key_file=" + key}); err != nil {
			t.Fatal(err)
		}
		var f options.Faults
		p.Faults(&f)
		if err := f.Err(); err == nil || err.Error() != "--"+name+": (set): must be another file than that of --service_account_key_file" {
			t.Errorf("--%s: %v", name, err)
		}
	}
}

func TestInFlags_WordsEachFaultOnce(t *testing.T) {
	var one, two options.Faults
	one.Add("source.Config.Endpoint", 1, "must be")
	one.Add("source.Config.Other", 2, "must not be")
	two.Add("sink.Config.Endpoint", 1, "must be")
	got := InFlags(strings.NewReplacer("source.Config.Endpoint", "--endpoint", "sink.Config.Endpoint", "--endpoint", "source.Config.Other", "--other"), one.Err(), nil, two.Err())
	if len(got) != 2 || got[0].Error() != "--endpoint: 1: must be" || got[1].Error() != "--other: 2: must not be" {
		t.Errorf("%v", got)
	}
}

func TestOutputFaults(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "there")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                              "",
		file:                            "",
		filepath.Join(dir, "new"):       "",
		dir:                             "must be a file",
		filepath.Join(dir, "no", "new"): "must be in a directory that exists",
		filepath.Join(file, "new"):      "must be in a directory that exists",
	} {
		var f options.Faults
		OutputFaults(&f, "plot", path)
		if err := f.Err(); (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), "--plot: ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
}
