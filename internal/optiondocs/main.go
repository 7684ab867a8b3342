package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// page is where the page lies in the module.
const page = "docs/options.md"

// sections are the structs of the page, in its order.
var sections = []struct{ dir, title string }{
	{"pubsubio/source", "Reading"},
	{"pubsubio/sink", "Writing"},
	{"pubsubio/dlq", "Dead letters"},
	{"pubsubio/options", "Shared by them"},
}

func main() {
	dir := flag.String("dir", ".", "the root of the module")
	flag.Parse()
	text, err := generate(*dir)
	if err == nil {
		err = os.WriteFile(filepath.Join(*dir, page), text, 0o644) //nolint:gosec // a page for everybody to read
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "optiondocs:", err)
		os.Exit(1)
	}
}

// generate returns the page of the module in dir.
func generate(dir string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`# Options

<!-- Written by go generate ./internal/optiondocs from the comments in the code: change those. -->

Every option is a field of a plain struct. The zero value of a field means its default. What breaks
a rule is refused while the pipeline is built, all faults at once.
`)
	for _, s := range sections {
		structs, err := configs(filepath.Join(dir, s.dir))
		if err != nil {
			return nil, err
		}
		if len(structs) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		for _, c := range structs {
			c.write(&b)
		}
	}
	return b.Bytes(), nil
}
