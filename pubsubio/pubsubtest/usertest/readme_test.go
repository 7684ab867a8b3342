package shop_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// The README shows code that runs: that of shout_test.go, word for word.
func TestReadme_ShowsTheTestsThatRun(t *testing.T) {
	readme, program := read(t, "../README.md"), read(t, "shout_test.go")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(readme, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of Go", len(blocks))
	}
	for i, b := range blocks {
		if !strings.Contains(program, b[1]) {
			t.Errorf("block %d is not in shout_test.go:\n%s", i+1, b[1])
		}
	}
	if n := strings.Count(blocks[0][1], "\n"); n > 27 {
		t.Errorf("the test has %d lines, it is to be short", n)
	}
}

// The calls that it names are there.
var _ = []any{
	(*pubsubtest.Server).WantPublished, (*pubsubtest.Server).WantDistinct, (*pubsubtest.Server).Messages, (*pubsubtest.Server).WantAcknowledged,
	(*pubsubtest.Server).WantUnacknowledged, (*pubsubtest.Server).WantOutstanding, (*pubsubtest.Server).EventuallyPublished, (*pubsubtest.Server).EventuallyAcknowledged,
	(*pubsubtest.Server).Eventually, (*pubsubtest.Server).Events, (*pubsubtest.Server).Stats, (*pubsubtest.Server).Answer, (*pubsubtest.Server).Deny,
	(*pubsubtest.Server).RefuseMessages, (*pubsubtest.Server).Order, (*pubsubtest.Server).Redeliver, (*pubsubtest.Server).Stop, (*pubsubtest.Server).Resume,
	(*pubsubtest.Server).BreakConnections, (*pubsubtest.Server).Silence, (*pubsubtest.Server).GoAway,
	pubsubtest.Times, pubsubtest.CarryOut, pubsubtest.Fail,
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
