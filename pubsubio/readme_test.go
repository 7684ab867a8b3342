package pubsubio_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readme returns the README and the first program in it.
func readme(t *testing.T) (text, program string) {
	t.Helper()
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text = string(b)
	_, rest, found := strings.Cut(text, "```go\n")
	program, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed {
		t.Fatal("the README has no block of Go")
	}
	return text, program + "\n"
}

// A README whose program does not compile is worse than none. The compiler sees it
// as a package of this module, through an overlay: nothing is written into the
// tree, and to export a package is to compile it and to link nothing.
func TestReadme_ProgramCompiles(t *testing.T) {
	_, program := readme(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(root, "readme_program", "main.go"): file},
	})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "list", "-export", "-overlay="+overlayFile, "./readme_program")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The README promises a short one, and one that works on a real runner too, where
// main is never reached: what it registers, it registers in init.
func TestReadme_ProgramIsShortAndRegistersInInit(t *testing.T) {
	_, program := readme(t)
	parsed, err := parser.ParseFile(token.NewFileSet(), "main.go", program, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(program, "\n)\n") // what follows the imports
	n := 0
	for line := range strings.Lines(body) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	if n > 15 {
		t.Errorf("the program has %d lines after its imports, want 15 at most", n)
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "main" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if x, ok := n.(*ast.SelectorExpr); ok && regexp.MustCompile(`^(Register|Function\d)`).MatchString(x.Sel.Name) {
				t.Errorf("main calls %s", x.Sel.Name)
			}
			return true
		})
	}
}

// The files that the README points to are there, and the packages it names.
func TestReadme_LinksLead(t *testing.T) {
	text, _ := readme(t)
	links := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllStringSubmatch(text, -1)
	if len(links) < 4 {
		t.Errorf("%d links, want those to CONTRIBUTING, decisions, CHANGELOG and LICENSE at least", len(links))
	}
	for _, l := range links {
		if _, err := os.Stat(filepath.Join("..", l[1])); err != nil {
			t.Errorf("link: %v", err)
		}
	}
}
