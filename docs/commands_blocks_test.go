package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

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
		c := command{page: page, line: at, text: line, around: around}
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
			from++
			for i = from; i < len(rest) && !fence.MatchString(rest[i]); {
				i++
			}
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
			c := command{page: page, line: from + 1 + strings.Count(paragraph[:m[2]], "\n"), text: text, around: sentence(paragraph, m[0], m[1])}
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
