package docs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A command is one that a reader of a page would copy.
type command struct {
	page string // its path
	line int
	text string // in one line, without a prompt; of several with a here-document
	// around is what a reader sees beside it: the paragraph right above its block and the
	// block, or the sentence that it stands in.
	around string
}

func (c command) String() string { return fmt.Sprintf("%s:%d: %s", c.page, c.line, c.text) }

// The marks of a command that no test executes. Each tells the reader why.
var (
	needsCloud = regexp.MustCompile(`(?i)needs? Google Cloud`)
	takesLong  = regexp.MustCompile(`(?i)takes? [^.:;]*(minutes|hours?)\b`)
	shortened  = regexp.MustCompile(`(?i)shortened`)
)

// walked is the mark of a command that integration/walk executes as it stands.
// TestCommands_WalkExecutesWhatThePageSays holds the page to it.
var walked = regexp.MustCompile(`(?i)the walk executes`)

// marked reports whether the page says why the command is not executed.
func (c command) marked() bool {
	return needsCloud.MatchString(c.around) || takesLong.MatchString(c.around) || shortened.MatchString(c.around)
}

var (
	assignments = regexp.MustCompile(`^([A-Z_]+=\S* +)+`)
	known       = regexp.MustCompile(`^(cat|go|gcloud|bash|sh|git|docker|curl|java|npm|pip|apt|apt-get|cloud-pubsub-emulator|\.ci/\S+)$`)
	ofGo        = regexp.MustCompile(`^go (run|test|build|install|generate|get|vet|tool) `)
)

// words are those of the command, behind what it sets in the environment.
func (c command) words() []string { return strings.Fields(assignments.ReplaceAllString(c.text, "")) }

// program is the base name of what it runs, go run's too, and otherwise of its first
// word.
func (c command) program() string {
	w := c.words()
	if len(w) > 2 && w[0] == "go" && w[1] == "run" {
		return filepath.Base(w[2])
	}
	return filepath.Base(w[0])
}

// programDirs are the directories of the programs of this module that pages tell of,
// by their names.
func programDirs(t *testing.T) map[string]string {
	t.Helper()
	mains, err := filepath.Glob("../pipelines/*/main.go")
	if err != nil || len(mains) < 4 {
		t.Fatal(mains, err)
	}
	out := make(map[string]string)
	for _, main := range append(mains, "../integration/bench/main.go", "../pubsubio/pubsubtest/pubsubtestd/main.go") {
		out[filepath.Base(filepath.Dir(main))] = filepath.Dir(main)
	}
	return out
}

// commandsOf returns the commands of a page, which is Markdown or the source of a
// program.
func commandsOf(page, text string, isProgram func(string) bool) (out []command, faults []string) {
	var blocks []block
	if filepath.Ext(page) == ".go" {
		blocks = inComment(text)
	} else {
		var rest []string
		blocks, rest, faults = blocksOf(text)
		for i := range faults {
			faults[i] = page + ":" + faults[i]
		}
		out = inline(page, rest)
	}
	for _, b := range blocks {
		out = append(out, b.commands(page, isProgram)...)
	}
	slices.SortStableFunc(out, func(a, b command) int { return a.line - b.line })
	return out, faults
}

// commandPages are the pages whose commands must work, by their paths: all but the
// changelog, which tells of what was, and the manuals of the programs.
func commandPages(t *testing.T) map[string]string {
	t.Helper()
	out := pages(t)
	delete(out, "../CHANGELOG.md")
	var more []string
	for _, pattern := range []string{"../pubsubio/README.md", "../pubsubio/*/README.md", "../pubsubio/*/*/README.md", "../pipelines/*/doc.go", "../integration/bench/doc.go", "../pubsubio/pubsubtest/pubsubtestd/main.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		more = append(more, found...)
	}
	for _, path := range more {
		text, err := os.ReadFile(path) //nolint:gosec // of this module
		if err != nil {
			t.Fatal(err)
		}
		out[path] = string(text)
	}
	return out
}

// A page and its text.
type page struct{ path, text string }

func sortedPages(t *testing.T) (out []page) {
	t.Helper()
	all := commandPages(t)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		out = append(out, page{path, all[path]})
	}
	return out
}

func TestCommands_AreFound(t *testing.T) {
	page := strings.ReplaceAll(`# Page

Text that names 'go doc' and 'relay', and has 'go run ./pipelines/relay --embedded'. Also
'go test ./...' (which takes two
minutes) and 'gcloud
pubsub topics list'. End.

'''sh
# needs Google Cloud
gcloud pubsub topics create orders \
    --project=shop

cd elsewhere
'''

'''console
$ relay --embedded
relay failed
$ verify \
  --help
'''

'''go
go run()
'''

Takes an hour:

    go run ./integration/bench --matrix=all \
        --rounds=3
    windowcount --help
    some drawing

1. An item

   '''sh
   cat >c.json <<EOF
   {
     "topic": "orders"
   }
   EOF
   loadgen --help
   '''
`, "'", "`")
	isProgram := func(s string) bool { return strings.Contains("relay verify windowcount loadgen", s) }
	found, faults := commandsOf("page.md", page, isProgram)
	want := []string{
		"page.md:3: go run ./pipelines/relay --embedded marked false",
		"page.md:4: go test ./... marked true",
		"page.md:5: gcloud pubsub topics list marked true",
		"page.md:10: gcloud pubsub topics create orders --project=shop marked true",
		"page.md:13: cd elsewhere marked true",
		"page.md:17: relay --embedded marked false",
		"page.md:19: verify --help marked false",
		"page.md:29: go run ./integration/bench --matrix=all --rounds=3 marked true",
		"page.md:31: windowcount --help marked true",
		"page.md:37: cat >c.json <<EOF\n{\n  \"topic\": \"orders\"\n}\nEOF marked false",
		"page.md:42: loadgen --help marked false",
	}
	var got []string
	for _, c := range found {
		got = append(got, fmt.Sprint(c, " marked ", c.marked()))
	}
	if !slices.Equal(got, want) || faults != nil {
		t.Errorf("found:\n%s\nwant:\n%s\n%v", strings.Join(got, "\n"), strings.Join(want, "\n"), faults)
	}

	_, faults = commandsOf("page.md", "a\n\n```\nb\n```\n", isProgram)
	if len(faults) != 1 || !strings.HasPrefix(faults[0], "page.md:3: a fence must say") {
		t.Errorf("%q", faults)
	}

	found, _ = commandsOf("doc.go", "// Relay moves:\n//\n//\trelay --a \\\n//\t      --b\n//\trun\n//\n// It needs Google Cloud.\npackage main\n\n//\n//\trelay --c\n", isProgram)
	if len(found) != 1 || found[0].String() != "doc.go:3: relay --a --b" || found[0].marked() {
		t.Errorf("%v", found)
	}
}
