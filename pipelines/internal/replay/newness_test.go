package replay

import (
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

func TestLull_IsOverAfterAnUnbrokenRowOfNewLetters(t *testing.T) {
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
		{6 * time.Second, true, false}, // and another, after a pause
		{5 * time.Second, true, false},
		{5 * time.Second, true, true},
	} {
		at = at.Add(step.after)
		if over := l.over(step.isNew, at); over != step.over {
			t.Errorf("at %v: over %v", at.Sub(yesterday), over)
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
