package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

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

// parse reads args into fs, a program's own flags, and into Beam's; one that both
// have is the program's. It goes on after a fault: the error joins everything that
// could not be read. given are the names of the flags that args set.
func parse(fs *flag.FlagSet, args []string) (given map[string]bool, help bool, err error) {
	flag.VisitAll(func(f *flag.Flag) {
		if fs.Lookup(f.Name) == nil {
			fs.Var(beamFlag{f}, f.Name, f.Usage)
		}
	})
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	var faults []error
	for len(args) > 0 {
		err := fs.Parse(args)
		if err != nil && len(fs.Args()) == len(args) {
			args = args[1:] // What has no flag's form, package flag does not step over.
		} else {
			args = fs.Args()
		}
		switch {
		case errors.Is(err, flag.ErrHelp):
			help = true
		case err != nil:
			faults = append(faults, err)
		case len(args) > 0:
			faults = append(faults, fmt.Errorf("unexpected argument: %q", args[0]))
			args = args[1:]
		}
	}
	given = make(map[string]bool)
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given, help, errors.Join(faults...)
}

// NamesVar defines a flag whose value is names with commas between them, and which
// may be given more than once. Spaces around a name are none of it.
func NamesVar(fs *flag.FlagSet, names *[]string, name, usage string) {
	fs.Func(name, usage, func(v string) error {
		for n := range strings.SplitSeq(v, ",") {
			if n = strings.TrimSpace(n); n != "" {
				*names = append(*names, n)
			}
		}
		return nil
	})
}

// InFlags returns the faults that are joined in errs, each as a Use with those Words says
// it and only once. The rules are those of the configurations that a program makes of its
// flags; replace has the names of flags for those of fields.
func InFlags(replace *strings.Replacer, errs ...error) []error {
	var out []error
	seen := make(map[string]bool)
	for _, err := range errs {
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		for _, fault := range joined.Unwrap() {
			if text := (Use{Words: replace}).Say(fault.Error()); !seen[text] {
				seen[text] = true
				out = append(out, errors.New(text))
			}
		}
	}
	return out
}
