package program

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999: "-999", 1_234_567_890: "1,234,567,890"} {
		if got := Grouped(n); got != want {
			t.Errorf("Grouped(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestWriteReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	if err := WriteReport("", nil); err != nil {
		t.Error(err)
	}
	if err := WriteReport(path, struct {
		N int `json:"n"`
	}{3}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); string(got) != "{\n  \"n\": 3\n}\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := WriteReport(filepath.Join(path, "no"), 1); err == nil {
		t.Error("written below a file")
	}
}

func TestUntil(t *testing.T) {
	for want, l := range map[string]options.Limit{
		"it is interrupted": {},
		"1,000 messages have come, or nothing has come for 2s, or 1m0s have passed, or it is interrupted": {
			MaxMessages: 1000, StopWhenIdle: 2 * time.Second, MaxDuration: time.Minute,
		},
	} {
		if got := Until(l); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
