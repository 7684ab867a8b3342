// Package docs holds the tests that keep the pages true.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages returns the pages by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, root := range []string{".", "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
				return err
			}
			text, err := os.ReadFile(path) //nolint:gosec // of this directory
			out[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

func TestPages_LinkToWhatIsThere(t *testing.T) {
	for path, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			}
		}
	}
}

// code returns all Go of those folders but for tests and comments.
func code(t *testing.T, folders ...string) string {
	t.Helper()
	var b strings.Builder
	for _, folder := range folders {
		addCode(t, &b, folder)
	}
	return b.String()
}

func addCode(t *testing.T, b *strings.Builder, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // of this module
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "//") {
				b.WriteString(line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var firstCell = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|")

// Somebody who searches the page for the text of an error must find it: each text in
// the first column stands in the code, but for what is left out at `…`.
func TestTroubleshooting_QuotesTheCode(t *testing.T) {
	text, err := os.ReadFile("guide/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	all := code(t, "../pubsubio", "../pipelines")
	cells := firstCell.FindAllStringSubmatch(string(text), -1)
	if len(cells) < 20 {
		t.Fatalf("%d texts found", len(cells))
	}
	for _, c := range cells {
		for quoted := range strings.SplitSeq(c[1], "`") {
			for part := range strings.SplitSeq(quoted, "…") {
				if part = strings.TrimSpace(part); !strings.Contains(all, part) {
					t.Errorf("%q stands nowhere in the code", part)
				}
			}
		}
	}
}

var goName = regexp.MustCompile("`(?:[A-Za-z]+\\.)?([A-Z][A-Za-z]+)[^`]*`")

// An option that the page names and the code has no more would send its reader away.
func TestMigration_NamesOptionsThatAreThere(t *testing.T) {
	text, err := os.ReadFile("guide/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	all, n := code(t, "../pubsubio"), 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range goName.FindAllStringSubmatch(cells[2], -1) {
			n++
			if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(all) {
				t.Errorf("the code has no %s", m[1])
			}
		}
	}
	if n < 50 {
		t.Errorf("%d names found", n)
	}
}
