package load

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadReport(t *testing.T) {
	good := Report{Run: "r", Topic: "t", Complete: true, Published: 5, Poison: 1, PoisonShare: 0.2, KeyCount: 3, Keys: map[string]int64{"key-0000": 2, "key-0001": 2, "key-0002": 1}}
	change := func(f func(*Report)) any {
		r := good
		f(&r)
		return r
	}
	for name, tc := range map[string]struct {
		content any
		want    string // empty: none
	}{
		"good":         {good, ""},
		"another's":    {map[string]int{"read": 3}, "names no run"},
		"no JSON":      {nil, "is no report of loadgen: "},
		"of a failure": {change(func(r *Report) { r.Complete = false }), "the report of a run that failed"},
		"sums":         {change(func(r *Report) { r.Published = 6 }), "does not add up: its keys have 5 messages, it says 6"},
		"keys":         {change(func(r *Report) { r.KeyCount = 2 }), "does not add up"},
		"negative":     {change(func(r *Report) { r.Keys = map[string]int64{"key-0000": -5} }), "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(tc.content)
			if err != nil {
				t.Fatal(err)
			}
			if tc.content == nil {
				text = []byte("{")
			}
			path := filepath.Join(t.TempDir(), "r.json")
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := ReadReport(path)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if err == nil && (r.Stream() != Stream{Run: "r", Keys: 3, Poison: 0.2}) {
				t.Errorf("%+v", r.Stream())
			}
		})
	}
	if _, err := ReadReport(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is read")
	}
}
