package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strings"
)

// notOptions are exported structs with exported fields that nobody sets.
var notOptions = []string{"Failed", "Faults", "Letter", "Encoded", "Result", "Entry", "Timed"}

// A config is a struct of options.
type config struct {
	pkg    *doc.Package
	typ    *doc.Type
	fields []field
}

// A field is one line of a struct: several names may share a type and a comment.
type field struct {
	names []string
	typ   string
	doc   string
}

// configs returns the structs of options of the package in dir: those with Config first.
func configs(dir string) ([]config, error) {
	fset := token.NewFileSet()
	notTest := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	//nolint:staticcheck // the packages have no build tags, and need no types here
	parsed, err := parser.ParseDir(fset, dir, notTest, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("read the package in %s: %w", dir, err)
	}
	var out []config
	for name, p := range parsed {
		pkg := doc.New(p, "github.com/beam-pubsub/beam-pubsub-go/pubsubio/"+name, doc.Mode(0))
		for _, t := range pkg.Types {
			if slices.Contains(notOptions, t.Name) {
				continue
			}
			c := config{pkg: pkg, typ: t, fields: fieldsOf(fset, t)}
			if len(c.fields) > 0 {
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b config) int {
		return boolsFirst(a.typ.Name == "Config", b.typ.Name == "Config")
	})
	return out, nil
}

func boolsFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// fieldsOf returns the exported fields of t that are documented; none where t is no
// struct.
func fieldsOf(fset *token.FileSet, t *doc.Type) []field {
	spec, ok := t.Decl.Specs[0].(*ast.TypeSpec)
	if !ok {
		return nil
	}
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	var out []field
	for _, f := range s.Fields.List {
		var names []string
		for _, n := range f.Names {
			if n.IsExported() {
				names = append(names, n.Name)
			}
		}
		if len(names) > 0 {
			out = append(out, field{names, source(fset, f.Type), f.Doc.Text()})
		}
	}
	return out
}

// source is the text of a node.
func source(fset *token.FileSet, n ast.Node) string {
	var b bytes.Buffer
	_ = format.Node(&b, fset, n) // a buffer takes everything
	return b.String()
}

// name is how a user of the module writes the struct.
func (c config) name() string { return c.pkg.Name + "." + c.typ.Name }

func (c config) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n### %s\n\n", c.name())
	b.Write(c.markdown(c.typ.Doc))
	for _, f := range c.fields {
		names := make([]string, len(f.names))
		for i, n := range f.names {
			names[i] = "`" + n + "`"
		}
		fmt.Fprintf(b, "\n#### %s\n\n*%s*\n\n", strings.Join(names, ", "), escape(f.typ))
		b.Write(c.markdown(f.doc))
	}
}

// escape has Markdown show a Go type as it is.
func escape(typ string) string {
	return strings.NewReplacer("*", `\*`, "[", `\[`, "]", `\]`).Replace(typ)
}

// markdown turns the text of a comment into Markdown; its links lead to pkg.go.dev.
func (c config) markdown(text string) []byte {
	p := c.pkg.Printer()
	p.DocLinkBaseURL = "https://pkg.go.dev"
	p.HeadingLevel = 5
	p.DocLinkURL = func(l *comment.DocLink) string {
		if l.ImportPath == "" {
			l.ImportPath = c.pkg.ImportPath
		}
		return l.DefaultURL(p.DocLinkBaseURL)
	}
	return p.Markdown(c.pkg.Parser().Parse(text))
}
