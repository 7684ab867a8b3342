package docs

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What a page says that the walk executes, the walk takes from that page, word for word
// and in the page's order: it has no commands of its own in their place.
func TestCommands_WalkExecutesWhatThePageSays(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "bash", "../integration/walk/walk.sh", "--commands").Output()
	if err != nil {
		t.Fatal(err)
	}
	executed := texts(block{kind: "sh", lines: strings.Split(string(out), "\n")}.commands("walk.sh", nil))
	var said []string
	for _, p := range sortedPages(t) {
		cs, _ := commandsOf(p.path, p.text, func(string) bool { return false })
		cs = slices.DeleteFunc(cs, func(c command) bool { return !walked.MatchString(c.around) })
		said = append(said, texts(cs)...)
	}
	// The server that stands between them on the page is also one of
	// TestCommands_WorkAsTheyStand, and has no mark.
	executed = slices.DeleteFunc(executed, func(s string) bool { return strings.Contains(s, daemon) })
	if len(said) < 6 || !slices.Equal(said, executed) {
		t.Errorf("the pages say that the walk executes\n%s\nand it executes\n%s", strings.Join(said, "\n"), strings.Join(executed, "\n"))
	}
}

func texts(cs []command) (out []string) {
	for _, c := range cs {
		out = append(out, c.text)
	}
	return out
}
