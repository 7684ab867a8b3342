package check_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// The page and the check tell the same: each permission in a row with its role and
// where it is granted, and none that the other does not know.
func TestPermissions_AreThoseOfTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]iam.Grant)
	for _, g := range iam.All {
		known[g.Permission] = g
	}
	told := make(map[string]bool)
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		role := quoted.FindStringSubmatch(cells[3])
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			g, ok := known[m[1]]
			if !strings.HasPrefix(m[1], "pubsub.") {
				continue
			}
			if !ok {
				t.Errorf("the check does not know %s", m[1])
				continue
			}
			told[m[1]] = true
			if role == nil || role[1] != g.Role {
				t.Errorf("%s: %q on the page, %s in the check", m[1], role, g.Role)
			}
			if on := strings.Contains(cells[2], ", project"); on != g.Project {
				t.Errorf("%s on a project: %t on the page, %t in the check", m[1], on, g.Project)
			}
		}
	}
	for _, g := range iam.All {
		if !told[g.Permission] {
			t.Errorf("the page does not tell of %s", g.Permission)
		}
	}
}
