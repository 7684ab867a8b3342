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

// A block is code in a page.
type block struct {
	line   int    // of its first line
	kind   string // sh, console, or empty where its lines have to tell
	lines  []string
	before string // the paragraph above it
}

// hereDocument matches a command that the lines below belong to.
var hereDocument = regexp.MustCompile(`<<'?(\w+)'?$`)

// commands returns those of the block.
func (b block) commands(page string, isProgram func(string) bool) (out []command) {
	around := b.before + "\n" + strings.Join(b.lines, "\n")
	for i := 0; i < len(b.lines); i++ {
		line, at := strings.TrimSpace(b.lines[i]), b.line+i
		if b.kind == "console" {
			var prompted bool
			if line, prompted = strings.CutPrefix(line, "$ "); !prompted {
				continue
			}
		}
		if line == "" || line[0] == '#' {
			continue
		}
		for strings.HasSuffix(line, `\`) && i+1 < len(b.lines) {
			i++
			line = strings.TrimSuffix(line, `\`) + strings.TrimSpace(b.lines[i])
		}
		if m := hereDocument.FindStringSubmatch(line); m != nil {
			indent := b.lines[i][:len(b.lines[i])-len(strings.TrimLeft(b.lines[i], " "))]
			for end := ""; end != m[1] && i+1 < len(b.lines); {
				i++
				end = strings.TrimPrefix(b.lines[i], indent)
				line += "\n" + end
			}
		}
		c := command{page, at, line, around}
		if b.kind != "" || isCommand(c, isProgram) {
			out = append(out, c)
		}
	}
	return out
}

func isCommand(c command, isProgram func(string) bool) bool {
	w := c.words()
	return len(w) > 0 && (known.MatchString(w[0]) || isProgram(w[0]))
}

var fence = regexp.MustCompile("^ *```(.*)$")

// blocksOf returns the blocks of a page in Markdown, and its lines without them. Each
// fence must say what is in it: else nobody knows what is a command.
func blocksOf(text string) (blocks []block, rest []string, faults []string) {
	rest = strings.Split(text, "\n")
	lines := slices.Clone(rest)
	for i := 0; i < len(rest); i++ {
		from, kind := i, ""
		if m := fence.FindStringSubmatch(rest[i]); m != nil {
			if kind = m[1]; kind == "" {
				faults = append(faults, fmt.Sprintf("%d: a fence must say what is in it: sh, console, go, json or text", i+1))
			}
			for i++; i < len(rest) && fence.FindString(rest[i]) == ""; i++ {
			}
			from++
		} else if isIndented(rest, i) {
			for i+1 < len(rest) && strings.HasPrefix(rest[i+1], "    ") {
				i++
			}
			i++
		} else {
			continue
		}
		b := block{line: from + 1, kind: kind, lines: slices.Clone(rest[from:min(i, len(rest))]), before: paragraphAbove(lines, from-1, kind != "" || fence.MatchString(lines[from-1]))}
		if kind == "bash" {
			b.kind = "sh"
		}
		if slices.Contains([]string{"", "sh", "console"}, b.kind) {
			blocks = append(blocks, b)
		}
		for j := from - 1; j <= i && j < len(rest); j++ {
			if j >= from || kind != "" {
				rest[j] = ""
			}
		}
	}
	return blocks, rest, faults
}

// isIndented reports whether a block that is indented begins at a line.
func isIndented(lines []string, i int) bool {
	return strings.HasPrefix(lines[i], "    ") && i > 0 && lines[i-1] == ""
}

// paragraphAbove is the text right above the first line of a block, which is behind a
// fence if fenced.
func paragraphAbove(lines []string, i int, fenced bool) string {
	if fenced {
		i--
	}
	for i >= 0 && strings.TrimSpace(lines[i]) == "" {
		i--
	}
	end := i + 1
	for i >= 0 && strings.TrimSpace(lines[i]) != "" && !fence.MatchString(lines[i]) && !strings.HasPrefix(lines[i], "    ") {
		i--
	}
	return strings.Join(lines[i+1:end], " ")
}

var span = regexp.MustCompile("`([^`]+)`")

// inline returns the commands in the text of a page: those that a reader would copy,
// not a name as go doc.
func inline(page string, lines []string) (out []command) {
	for i := 0; i < len(lines); i++ {
		from := i
		for i < len(lines) && strings.TrimSpace(lines[i]) != "" {
			i++
		}
		paragraph := strings.Join(lines[from:i], "\n")
		for _, m := range span.FindAllStringSubmatchIndex(paragraph, -1) {
			text := strings.Join(strings.Fields(paragraph[m[2]:m[3]]), " ")
			c := command{page, from + 1 + strings.Count(paragraph[:m[2]], "\n"), text, sentence(paragraph, m[0], m[1])}
			w := c.words()
			if len(w) < 2 || !known.MatchString(w[0]) || w[0] == "go" && !ofGo.MatchString(strings.Join(w, " ")) {
				continue
			}
			out = append(out, c)
		}
	}
	return out
}

var sentenceEnd = regexp.MustCompile(`\.\s`)

// sentence is that around a part of a paragraph, in one line.
func sentence(paragraph string, from, to int) string {
	begin, end := 0, len(paragraph)
	for _, at := range sentenceEnd.FindAllStringIndex(paragraph, -1) {
		if at[1] <= from {
			begin = at[1]
		} else if at[0] >= to && at[0] < end {
			end = at[0]
		}
	}
	return strings.ReplaceAll(paragraph[begin:end], "\n", " ")
}

// inComment returns the blocks of the comment of a package: its source as far as the
// package clause.
func inComment(source string) []block {
	comment, _, _ := strings.Cut(source, "\npackage ")
	lines := strings.Split(comment, "\n")
	for i, line := range lines {
		line = strings.TrimPrefix(line, "//")
		if code, ok := strings.CutPrefix(line, "\t"); ok {
			lines[i] = "    " + code
		} else {
			lines[i] = strings.TrimPrefix(line, " ")
		}
	}
	blocks, _, _ := blocksOf(strings.Join(lines, "\n"))
	return blocks
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
