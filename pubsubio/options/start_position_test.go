package options

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

var (
	aNight = time.Date(2026, 11, 30, 3, 4, 5, 678901234, time.FixedZone("", 3600))
	aNoon  = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

// Workers rebuild a DoFn from its JSON: a position that came out otherwise would
// lose or repeat everything.
func TestStartPosition_TravelsAsJSON(t *testing.T) {
	for _, c := range []struct {
		position StartPosition
		json     string
	}{
		{StartPosition{}, `{"from":"ContinueFromSubscription"}`},
		{ContinueFromSubscription(), `{"from":"ContinueFromSubscription"}`},
		{EarliestRetained(), `{"from":"EarliestRetained"}`},
		{Latest(), `{"from":"Latest"}`},
		{Latest().At(aNoon), `{"from":"Latest","at":"2026-11-30T12:00:00Z"}`},
		{FromTimestamp(aNight), `{"from":"FromTimestamp","at":"2026-11-30T02:04:05.678901234Z"}`},
	} {
		b, err := json.Marshal(c.position)
		if err != nil || string(b) != c.json {
			t.Errorf("%v is %s, error %v, want %s", c.position, b, err, c.json)
		}
		var back StartPosition
		if err := json.Unmarshal(b, &back); err != nil || back != c.position {
			t.Errorf("%s comes out as %v, error %v", b, back, err)
		}
	}
}

func TestStartPosition_AnUnknownOneIsAnError(t *testing.T) {
	for _, text := range []string{`{"from":"Snapshot"}`, `{}`, `7`, `{"from":"Latest","at":"noon"}`} {
		var p StartPosition
		err := json.Unmarshal([]byte(text), &p)
		if err == nil || !strings.Contains(err.Error(), "options.StartPosition: ") {
			t.Errorf("%s comes out as %v, error %v", text, p, err)
		}
	}
}

func TestStartPosition_SeekTime(t *testing.T) {
	for _, c := range []struct {
		position StartPosition
		want     time.Time
		seeks    bool
	}{
		{ContinueFromSubscription(), time.Time{}, false},
		{EarliestRetained(), time.Unix(0, 0), true},
		{Latest().At(aNoon), aNoon, true},
		// The time of construction stays, whoever asks again.
		{Latest().At(aNoon).At(aNoon.Add(time.Hour)), aNoon, true},
		{FromTimestamp(aNight).At(aNoon), aNight, true},
		{ContinueFromSubscription().At(aNoon), time.Time{}, false},
	} {
		if to, seeks := c.position.SeekTime(); !to.Equal(c.want) || seeks != c.seeks {
			t.Errorf("%v moves to %v, %v, want %v, %v", c.position, to, seeks, c.want, c.seeks)
		}
	}
}

func TestStartPosition_Faults(t *testing.T) {
	for _, c := range []struct {
		position StartPosition
		want     string
	}{
		{StartPosition{}, ""},
		{EarliestRetained(), ""},
		{Latest(), ""},
		{FromTimestamp(aNight), ""},
		{FromTimestamp(time.Time{}), "f: options.FromTimestamp(): must be given a time; options.EarliestRetained() is for all that is retained"},
		{FromTimestamp(aNoon.AddDate(8000, 0, 0)), "f: options.FromTimestamp(10026-11-30T12:00:00Z): must be in the years 1 to 9999"},
		{FromTimestamp(aNoon.AddDate(-2027, 0, 0)), "f: options.FromTimestamp(-0001-11-30T12:00:00Z): must be in the years 1 to 9999"},
	} {
		if got := faultsOf(func(f *Faults) { c.position.Faults(f, "f") }); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
