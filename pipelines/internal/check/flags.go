package check

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// settings are what the flags say.
type settings struct {
	connection options.Connection
	config     string
	account    string
	report     string
	help       bool

	// program is the one whose flags are checked, "" with a file. use is what it uses.
	program string
	use     program.Use
	// reportBehind is set where the program's flags have a --report: it has one itself.
	reportBehind bool
}

var sections = []program.Section{
	{Title: "What to check, beside the flags of a program", Flags: []string{"config"}},
	{Title: "What to print", Flags: []string{"account", "report"}},
	{Title: "Which Pub/Sub, beside --config", Flags: []string{"emulator_endpoint", "pubsub_endpoint", "service_account_key_file"}},
}

// connectionFlags are those that a program has itself.
var connectionFlags = []string{"emulator_endpoint", "pubsub_endpoint", "service_account_key_file"}

// ownFlags defines check's flags.
func ownFlags(s *settings) *flag.FlagSet {
	fs := flag.NewFlagSet("check", flag.ContinueOnError)
	fs.StringVar(&s.config, "config", "", "`file` with the configurations of a pipeline, as JSON, instead of a program and its flags")
	fs.StringVar(&s.account, "account", "", "the `account` that the workers run as, an e-mail address, for the commands that grant permissions (default: MEMBER, to be filled in)")
	fs.StringVar(&s.report, "report", "", "`file` to write what was found to, as JSON")
	fs.StringVar(&s.connection.EmulatorEndpoint, "emulator_endpoint", "", "`host:port` of an emulator, in plaintext and without credentials (default: the service)")
	fs.StringVar(&s.connection.Endpoint, "pubsub_endpoint", "", "`host:port` of a regional endpoint of the service (default: the global one)")
	fs.StringVar(&s.connection.ServiceAccountKeyFile, "service_account_key_file", "", "`path` of a service account's JSON key (default: application default credentials)")
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	return fs
}

// parseFlags reads check's flags, and then those of the program that follows, or the
// file. The error joins all that is wrong with them; what is wrong with the settings of
// a pipeline is found later, with the rest.
func parseFlags(args []string) (settings, error) {
	var s settings
	fs := ownFlags(&s)
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		s.help = true
		return s, nil
	} else if err != nil {
		return s, err // What follows it may be anything.
	}
	var f options.Faults
	if !isAccount(s.account) {
		f.Add("--account", fmt.Sprintf("%q", s.account), "must be an e-mail address, or as gcloud writes a member: user:ADDRESS, group:ADDRESS or serviceAccount:ADDRESS")
	}
	given := make(map[string]bool)
	fs.Visit(func(fl *flag.Flag) { given[fl.Name] = true })
	switch rest := fs.Args(); {
	case s.config != "":
		s.readConfig(&f, rest)
	case len(rest) == 0:
		f.AddError(errors.New("give the name of a program and its flags, or --config"))
	default:
		for _, name := range connectionFlags {
			if given[name] {
				f.Add("--"+name, "(set)", "must be among the flags of "+rest[0]+", behind its name, or beside --config")
			}
		}
		s.readProgram(&f, rest[0], rest[1:])
	}
	s.reportFaults(&f)
	return s, f.Err()
}

// reportFaults records in f why --report cannot be written, or would overwrite what is read.
func (s *settings) reportFaults(f *options.Faults) {
	program.OutputFaults(f, "report", s.report)
	program.SameFileFaults(f, "report", s.report, "config", s.config)
	named := s.connection.ServiceAccountKeyFile
	if s.program != "" {
		named = s.use.Connection.ServiceAccountKeyFile
	}
	program.KeyFaults(f, "report", s.report, named, "--service_account_key_file")
	for _, key := range keyFiles(s.use) {
		if key != named {
			program.KeyFaults(f, "report", s.report, key, "a ServiceAccountKeyFile in --config")
		}
	}
}

// keyFiles are the key files that configurations name, those of a policy's queue included.
func keyFiles(u program.Use) []string {
	var keys []string
	queue := func(q dlq.Queue) {
		if c, ok := q.(dlq.Config); ok {
			keys = append(keys, c.ServiceAccountKeyFile)
		}
	}
	for _, s := range u.Sources {
		keys = append(keys, s.ServiceAccountKeyFile)
		queue(s.OnDecodeFailure.Queue())
	}
	for _, s := range u.Sinks {
		keys = append(keys, s.ServiceAccountKeyFile)
		queue(s.OnFailure.Queue())
	}
	for _, q := range u.Queues {
		queue(q)
	}
	return keys
}

// readProgram reads the flags of a program.
func (s *settings) readProgram(f *options.Faults, name string, args []string) {
	use := useOf(name)
	if use == nil {
		f.AddError(fmt.Errorf("%q: must be %s, behind check's own flags", name, programNames()))
		return
	}
	var err error
	s.program = name
	s.use, err = use(s.withoutOwn(f, args))
	s.help = s.use.Help
	f.AddError(err)
}

// withoutOwn returns the flags of a program without those of check, which stand before its
// name, and records these in f. A --report may be the program's own.
func (s *settings) withoutOwn(f *options.Faults, args []string) []string {
	var rest []string
	for i := 0; i < len(args); i++ {
		name, _, whole := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-"), "=")
		switch {
		case !strings.HasPrefix(args[i], "-"):
			rest = append(rest, args[i])
		case name == "config" || name == "account":
			f.Add("--"+name, "(set)", "must be before "+s.program+", among check's own flags")
			if !whole {
				i++ // The next is its value.
			}
		default:
			s.reportBehind = s.reportBehind || name == "report"
			rest = append(rest, args[i])
		}
	}
	return rest
}

var asFlags = strings.NewReplacer(
	"check.EmulatorEndpoint", "--emulator_endpoint",
	"check.Endpoint", "--pubsub_endpoint",
	"check.ServiceAccountKeyFile", "--service_account_key_file",
	"beside EmulatorEndpoint", "beside --emulator_endpoint",
)

// readConfig reads the file.
func (s *settings) readConfig(f *options.Faults, rest []string) {
	if len(rest) > 0 {
		f.Add("--config", fmt.Sprintf("%q", s.config), fmt.Sprintf("must not be given beside the name of a program, %q", rest[0]))
		return
	}
	var connection options.Faults
	s.connection.Faults(&connection, "check")
	for _, err := range program.InFlags(asFlags, connection.Err()) {
		f.AddError(err)
	}
	text, err := os.ReadFile(s.config)
	if err != nil {
		f.AddError(fmt.Errorf("--config: %w", err))
		return
	}
	configs, err := readConfigs(text)
	if err != nil {
		f.AddError(fmt.Errorf("--config %s:\n%w", s.config, err))
		return
	}
	s.use.Sources, s.use.Sinks, s.use.Queues = configs.Sources, configs.Sinks, configs.Queues
	connect(&s.use, s.connection)
}

func isAccount(s string) bool {
	if s == "" {
		return true
	}
	_, address, prefixed := strings.Cut(s, ":")
	if !prefixed {
		address = s
	}
	local, domain, ok := strings.Cut(address, "@")
	return ok && local != "" && domain != "" && !strings.ContainsAny(s, " \t\n'\"")
}

// member is the account as gcloud writes it.
func (s settings) member() string {
	switch {
	case s.account == "" || strings.Contains(s.account, ":"):
		return s.account
	case strings.HasSuffix(s.account, "gserviceaccount.com"):
		return "serviceAccount:" + s.account
	}
	return "user:" + s.account
}
