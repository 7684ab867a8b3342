package replay

import (
	"strings"
	"testing"

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
	if letter, why := p.add(part("a", 2, 2, "5678")); letter != nil || why != "" || p.toSweep() != 0 {
		t.Errorf("%v, %q", letter, why)
	}
	if _, why := p.add(part("b", 1, 2, "12345678")); why != "" {
		t.Errorf("left because of %q", why)
	}
	n := 0
	p.missing(func(e dlq.Entry, _ string) { n++ })
	if n != 1 {
		t.Errorf("%d parts are missing others", n)
	}
}

// Only what was published is swept, and each part once.
func TestParts_Sweep(t *testing.T) {
	p := newParts(100)
	p.whole["a"], p.whole["b"] = fate{of: 3}, fate{of: 2}
	p.published("a")
	if n := p.toSweep(); n != 2 {
		t.Errorf("%d to sweep", n)
	}
	if p.sweep(part("b", 1, 2, "")) || p.sweep(dlq.Entry{}) || !p.sweep(part("a", 1, 3, "")) {
		t.Error("swept what was not published, or not what was")
	}
	if n := p.toSweep(); n != 1 {
		t.Errorf("%d to sweep", n)
	}
}
