package replay

import (
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

func TestLull_IsOverAfterARowOfNewLetters(t *testing.T) {
	l := lull{length: 10 * time.Second}
	at := yesterday
	for _, step := range []struct {
		after time.Duration
		isNew bool
		over  bool
	}{
		{0, true, false},
		{5 * time.Second, true, false},
		{4 * time.Second, false, false}, // another row
		{time.Second, true, false},
		{5 * time.Second, true, false},
		{4 * time.Second, true, false},
		{time.Second, true, true},
		{time.Second, false, false}, // and another
		{time.Second, true, false},
	} {
		at = at.Add(step.after)
		if over := l.over(step.isNew, at); over != step.over {
			t.Errorf("at %v: over %v", at.Sub(yesterday), over)
		}
	}
}

// A queue that gets a new letter every now and then, each before the read is idle, kept a
// replay from ending.
func TestLull_EndsHoweverSeldomNewLettersCome(t *testing.T) {
	const length = 30 * time.Second
	for _, tc := range []struct{ every, over time.Duration }{
		{time.Millisecond, length},
		{15 * time.Second, length},
		{16 * time.Second, 32 * time.Second},
		{20 * time.Second, 40 * time.Second},
		{length - 1, 2 * (length - 1)},
	} {
		l := lull{length: length}
		l.over(false, yesterday)
		for at := time.Duration(0); !l.over(true, yesterday.Add(at)); at += tc.every {
			if at >= tc.over {
				t.Errorf("a new letter every %v: not over after %v", tc.every, at)
				break
			}
		}
	}
}

// While the sink waits for the service no letter is looked at, and the first new one to
// come then has others behind it.
func TestLull_APauseIsNoRow(t *testing.T) {
	const length = 30 * time.Second
	for _, pause := range []time.Duration{length - 1, length, time.Hour} {
		l := lull{length: length}
		at := yesterday
		for _, after := range []time.Duration{0, pause, length/2 - 1} {
			if at = at.Add(after); l.over(true, at) {
				t.Errorf("after a pause of %v it is over at %v", pause, at.Sub(yesterday))
			}
		}
	}
}

// A letter is new by the service's clock: a worker whose clock is ahead makes none new.
// What a replay has sent back is new by its own clock, too, as the two may differ.
func TestChoice_NewLetters(t *testing.T) {
	begun := yesterday
	for name, tc := range map[string]struct {
		entry     dlq.Entry
		published time.Time
		want      bool
	}{
		"before":                    {dlq.Entry{Hops: 1, Time: begun.Add(-1)}, begun.Add(-1), false},
		"since":                     {dlq.Entry{Hops: 1, Time: begun.Add(-1)}, begun, true},
		"a worker's clock is ahead": {dlq.Entry{Hops: 1, Time: begun.Add(time.Hour)}, begun.Add(-1), false},
		"sent back":                 {dlq.Entry{Hops: 2, Time: begun.Add(1)}, begun.Add(-time.Second), true},
		"sent back before":          {dlq.Entry{Hops: 2, Time: begun.Add(-1)}, begun.Add(-time.Second), false},
	} {
		if got := (choice{begun: begun}).isNew(tc.entry, tc.published); got != tc.want {
			t.Errorf("%s: new %v", name, got)
		}
	}
}
