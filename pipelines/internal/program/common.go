package program

import (
	"flag"
	"strconv"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// Common is what every program's flags say.
type Common struct {
	// Connection says which Pub/Sub, and as whom.
	Connection options.Connection
	// Report is the file that the result is written to as JSON; none if empty.
	Report string
	// Verbose asks for Beam's log of level info, too.
	Verbose bool
	// DryRun asks for a check and a plan instead of a run. On Dataflow it is Beam's
	// own flag, which has the job translated and not submitted.
	DryRun bool
	// Help asks for the manual.
	Help bool
	// Given are the flags that were given, Beam's too.
	Given map[string]bool
	empty []string // of those, texts that are empty
	plot  string   // the file of --plot, which some programs have
}

// CommonFlags are the names of the flags that Define defines, for a manual. --help
// is package flag's.
var CommonFlags = []string{"emulator_endpoint", "pubsub_endpoint", "service_account_key_file", "report", "dry_run", "verbose"}

// Define adds the flags to fs. Beam has a flag --endpoint already, that of a job
// server.
func (c *Common) Define(fs *flag.FlagSet) {
	fs.StringVar(&c.Connection.EmulatorEndpoint, "emulator_endpoint", "", "`host:port` of an emulator, in plaintext and without credentials (default: the service)")
	fs.StringVar(&c.Connection.Endpoint, "pubsub_endpoint", "", "`host:port` of a regional endpoint of the service (default: the global one)")
	fs.StringVar(&c.Connection.ServiceAccountKeyFile, "service_account_key_file", "", "`path` of a service account's JSON key (default: application default credentials)")
	fs.StringVar(&c.Report, "report", "", "`file` to write the result to, as JSON; beside --dry_run, what was found")
	fs.BoolVar(&c.DryRun, "dry_run", false, "check names, existence and permissions, print what would be done, and do nothing of it; with --runner=dataflow, have the job translated and not submitted")
	fs.BoolVar(&c.Verbose, "verbose", false, "show Beam's log of level info too")
}

// Parse reads args into fs, which holds the program's flags and those of Define, and
// into Beam's. The error joins everything that could not be read.
func (c *Common) Parse(fs *flag.FlagSet, args []string) error {
	given, help, err := parse(fs, args)
	c.Given, c.Help = given, help
	fs.Visit(func(f *flag.Flag) {
		if g, ok := f.Value.(flag.Getter); ok && g.Get() == "" {
			c.empty = append(c.empty, f.Name)
		}
	})
	if plot := fs.Lookup("plot"); plot != nil {
		c.plot = plot.Value.String()
	}
	if flag.Lookup("dry_run") != nil { // Beam's, of Dataflow, is this one.
		_ = flag.Set("dry_run", strconv.FormatBool(c.DryRun))
	}
	return err
}

// Faults records in f what is wrong with the flags that no configuration checks.
func (c *Common) Faults(f *options.Faults) {
	for _, name := range c.empty { // As of a variable of a shell that is not set.
		f.Add("--"+name, `""`, "must not be empty: leave the flag out for its default")
	}
	OutputFaults(f, "report", c.Report)
	KeyFaults(f, "report", c.Report, c.Connection.ServiceAccountKeyFile, "--service_account_key_file")
	KeyFaults(f, "plot", c.plot, c.Connection.ServiceAccountKeyFile, "--service_account_key_file")
}

// KeyFaults is [SameFileFaults] for the file of a service account's key, whose path nobody
// is told; of says where it is named.
func KeyFaults(f *options.Faults, flagName, path, key, of string) {
	if path != "" && key != "" && sameFile(path, key) {
		f.Add("--"+flagName, "(set)", "must be another file than that of "+of)
	}
}
