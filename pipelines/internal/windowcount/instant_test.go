package windowcount

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"
)

// Package json writes no year beyond 9999: a message that said so ended the run, after
// others were acknowledged.
func TestInstant_WritesAnyTimeOfBeam(t *testing.T) {
	for want, at := range map[string]time.Time{
		`"2026-03-01T12:00:00Z"`:        began,
		`"9999-12-31T23:59:59.999Z"`:    time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC),
		`"+010000-01-01T00:00:00Z"`:     time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		`"+012000-02-29T01:02:03.25Z"`:  time.Date(12000, 2, 29, 1, 2, 3, 250e6, time.UTC),
		`"-000001-02-28T00:00:00Z"`:     time.Date(-1, 2, 28, 0, 0, 0, 0, time.UTC),
		`"-000400-02-29T00:00:00Z"`:     time.Date(-400, 2, 29, 0, 0, 0, 0, time.UTC),
		`"+294247-01-10T04:00:54.775Z"`: mtime.MaxTimestamp.ToTime().UTC(),
		`"-290308-12-21T19:59:05.225Z"`: mtime.MinTimestamp.ToTime().UTC(),
	} {
		got, err := json.Marshal(instant{at})
		if err != nil || string(got) != want {
			t.Errorf("%v is %s, want %s: %v", at, got, want, err)
		}
		var back instant
		if err := json.Unmarshal(got, &back); err != nil || !back.Equal(at) {
			t.Errorf("%s is read as %v, want %v: %v", got, back, at, err)
		}
	}
	for _, text := range []string{`"+1"`, `"+010000-13-01T00:00:00Z"`, `"noon"`, `1`} {
		if err := json.Unmarshal([]byte(text), new(instant)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}
