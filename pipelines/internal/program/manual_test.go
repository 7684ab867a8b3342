package program

import (
	"bytes"
	"strings"
	"testing"
)

func TestManual_IsThePackageCommentAndTheFlags(t *testing.T) {
	var out bytes.Buffer
	Manual{
		Source: "// Mover moves things:\n//\n//\tmover --from=a\n//\n// # Exit codes\n//\n//\t0    done\npackage main\n\nvar x = 1\n",
		Sections: []Section{
			{Title: "What", Flags: []string{"n"}},
			{Title: "As every program here", Flags: CommonFlags},
		},
	}.Print(&out, new(parsed).flags())
	head, rest, found := strings.Cut(out.String(), "\nAS EVERY PROGRAM HERE\n")
	if want := `Mover moves things:

    mover --from=a

EXIT CODES

    0    done

WHAT
  --n number
      a number (default 7)
`; head != want {
		t.Errorf("head:\n%s\nwant:\n%s", head, want)
	}
	for _, want := range []string{
		"  --emulator_endpoint host:port\n      host:port of an emulator, ",
		"\n  --verbose\n",
		"\nOTHER FLAGS\n  --names names\n",
		"\nBeam's flags, --runner (default prism) the first of them, are taken too:\n  --",
		" --worker_binary",
	} {
		if !found || !strings.Contains(rest, want) {
			t.Errorf("no %q in:\n%s", want, rest)
		}
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 101 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
	if strings.Contains(rest, "test.") || strings.Count(rest, "  --dry_run\n") != 1 {
		t.Errorf("rest:\n%s", rest)
	}
}
