package replay

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

func part(id string, number, of int, data string) dlq.Entry {
	return dlq.Entry{Kind: dlq.Envelope, ID: id + data, Part: &dlq.Part{ID: id, Number: number, Of: of, Size: 100, Data: []byte(data)}}
}

// What waits is bounded, and makes room again; parts that do not fit together are left.
func TestParts_AreBounded(t *testing.T) {
	p := newParts(8)
	for range 2 { // A copy takes no room.
		if letter, why := p.add(part("a", 1, 2, "1234")); letter != nil || why != "" {
			t.Fatalf("%v, %q", letter, why)
		}
	}
	if _, why := p.add(part("b", 1, 2, "12345")); !strings.Contains(why, "too many others wait") {
		t.Errorf("left because of %q", why)
	}
	if letter, why := p.add(part("a", 2, 2, "5678")); letter != nil || !strings.Contains(why, "they had 100") {
		t.Errorf("%v, %q", letter, why)
	}
	if letter, why := p.add(part("a", 2, 2, "5678")); letter != nil || why != "" || p.unswept() != 0 {
		t.Errorf("%v, %q", letter, why)
	}
	if _, why := p.add(part("b", 1, 2, "12345678")); why != "" {
		t.Errorf("left because of %q", why)
	}
	n := 0
	p.missing(true, func(e dlq.Entry, _ string) { n++ })
	if n != 1 {
		t.Errorf("%d parts are missing others", n)
	}
}

// Only what was published is swept, each message of its parts once: copies, too, that came
// before and after, and not the one that the letter was published with.
func TestParts_Sweep(t *testing.T) {
	p := newParts(1000)
	named := func(message string, e dlq.Entry) dlq.Entry {
		e.ID = message
		return e
	}
	a1, a2 := part("a", 1, 2, "1"), part("a", 2, 2, strings.Repeat("2", 99))
	whole := func(letter *dlq.Entry) bool { return letter != nil }
	p.add(a1)
	p.add(named("copy of 1", a1))
	p.add(part("b", 1, 2, "1"))
	if joined, _ := p.add(a2); whole(joined) {
		t.Fatal("what holds nothing that can be read is joined")
	}
	p.published("a", a2.ID)
	p.add(named("copy of 2", a2))
	p.add(a2) // It has lapsed, or is acknowledged by now.
	if n := p.unswept(); n != 3 {
		t.Errorf("%d to sweep", n)
	}
	for _, e := range []dlq.Entry{part("b", 1, 2, "1"), part("c", 1, 2, ""), {}} {
		if p.sweep(e) {
			t.Errorf("swept %+v, which was not published", e.Part)
		}
	}
	for _, e := range []dlq.Entry{a2, a1, a1, named("copy of 2", a2)} {
		if !p.sweep(e) {
			t.Errorf("left %s", e.ID)
		}
	}
	if n, ids := p.unswept(), p.unsweptLetters(); n != 1 || !slices.Equal(ids, []string{"a"}) {
		t.Errorf("%d to sweep, of %v", n, ids)
	}
	if p.sweep(named("copy of 1", a1)); p.unswept() != 0 || p.unsweptLetters() != nil {
		t.Errorf("%d to sweep", p.unswept())
	}
}

// Whoever is told that a part has no others may acknowledge it by hand: where they have not
// come yet, the letter would be lost.
func TestParts_MissingSaysWhy(t *testing.T) {
	s := &sorter{choice: choice{begun: yesterday}, parts: newParts(1000), survey: newSurvey(), lull: &lull{length: time.Hour}}
	for _, id := range []string{"alone", "newer"} {
		s.sort(part(id, 1, 2, "1"), yesterday.Add(-1))
	}
	s.sort(part("newer", 2, 2, "2"), yesterday)
	for toEnd, alone := range map[bool]string{true: byHand, false: "had not come when it ended"} {
		n := 0
		s.parts.missing(toEnd, func(e dlq.Entry, why string) {
			n++
			want := map[string]string{"alone": alone, "newer": "were not there when the replay began"}[e.Part.ID]
			if !strings.HasPrefix(why, "a part of a letter in 2, of which others ") || !strings.HasSuffix(why, want) {
				t.Errorf("to the end %v: part of %q is left because it is %s", toEnd, e.Part.ID, why)
			}
		})
		if n != 2 {
			t.Errorf("%d parts", n)
		}
	}
}
