package program

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Manual is what --help prints: the comment of the program's package, then its
// flags.
type Manual struct {
	// Source is the text of doc.go, which the program embeds: what go doc says and
	// what --help says are the same.
	Source string
	// Sections are the flags, in the order in which they are told. One that is in
	// none is told under "Other flags".
	Sections []Section
	// Alone is set for a program that runs no pipeline, and takes none of Beam's flags.
	Alone bool
}

// A Section is flags that belong together.
type Section struct {
	Title string
	Flags []string
}

// Print writes the manual with fs, the program's own flags.
func (m Manual) Print(w io.Writer, fs *flag.FlagSet) {
	fmt.Fprintln(w, m.text())
	told := make(map[string]bool)
	for _, s := range m.Sections {
		printSection(w, fs, s)
		for _, name := range s.Flags {
			told[name] = true
		}
	}
	other := Section{Title: "Other flags"}
	fs.VisitAll(func(f *flag.Flag) {
		if !told[f.Name] {
			other.Flags = append(other.Flags, f.Name)
		}
	})
	printSection(w, fs, other)
	if m.Alone {
		return
	}
	fmt.Fprintf(w, "\nBeam's flags, --runner (default prism) the first of them, are taken too:\n%s\n", wrap(beamFlags(fs), 100))
}

// text is the comment of the package as a text: without slashes, its headings in
// capitals, its code by four columns in.
func (m Manual) text() string {
	comment, _, _ := strings.Cut(m.Source, "\npackage ")
	var b strings.Builder
	for line := range strings.Lines(comment) {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimRight(line, "\n"), "//"), " ")
		if title, ok := strings.CutPrefix(line, "# "); ok {
			line = strings.ToUpper(title)
		}
		b.WriteString(strings.ReplaceAll(line, "\t", "    ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func printSection(w io.Writer, fs *flag.FlagSet, s Section) {
	if len(s.Flags) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", strings.ToUpper(s.Title))
	for _, name := range s.Flags {
		f := fs.Lookup(name)
		if f == nil {
			continue
		}
		value, usage := flag.UnquoteUsage(f)
		if value != "" {
			value = " " + value
		}
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "false" {
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		fmt.Fprintf(w, "  --%s%s\n%s\n", f.Name, value, indent(wrap(strings.Fields(usage), 84), 4))
	}
}

// beamFlags are the flags of Beam's that fs does not replace.
func beamFlags(fs *flag.FlagSet) []string {
	var names []string
	flag.VisitAll(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") && fs.Lookup(f.Name) == nil {
			names = append(names, "--"+f.Name)
		}
	})
	slices.Sort(names)
	return names
}

// wrap joins words into lines of about that width, two columns in.
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

// Wrapped breaks a text into lines of about that width, by so many columns in.
func Wrapped(text string, width, in int) string {
	lines := strings.Split(wrap(strings.Fields(text), width), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return indent(strings.Join(lines, "\n"), in)
}

// indent moves every line of text in by n columns more.
func indent(text string, n int) string {
	by := strings.Repeat(" ", n)
	return by + strings.ReplaceAll(text, "\n", "\n"+by)
}
