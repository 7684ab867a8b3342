package source

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAwaiting_ExpectsUntilItComesOrTheTimeIsOver(t *testing.T) {
	var w awaiting
	w.add(messages("1", "2"), epoch)
	if got := w.oldest(epoch); !got.Equal(epoch) {
		t.Errorf("the oldest is %v", got)
	}
	w.came("1")
	w.came("never heard of")
	if got := w.oldest(epoch.Add(awaitFor - 1)); got.IsZero() {
		t.Error("2 is not expected any more")
	}
	if got := w.oldest(epoch.Add(awaitFor)); !got.IsZero() {
		t.Errorf("still expecting %v", got)
	}
}

// What was given up again is expected from then on.
func TestAwaiting_GivenUpAgain(t *testing.T) {
	var w awaiting
	w.add(messages("1"), epoch)
	w.add(messages("1"), epoch.Add(awaitFor/2))
	if got := w.oldest(epoch.Add(awaitFor)); got.IsZero() {
		t.Error("the second time was forgotten with the first")
	}
	if got := w.oldest(epoch.Add(2 * awaitFor)); !got.IsZero() {
		t.Errorf("still expecting %v", got)
	}
}

// A poison message that comes and goes for hours, and bundles that fail again and
// again, leave nothing behind.
func TestAwaiting_DoesNotGrow(t *testing.T) {
	var w awaiting
	now := epoch
	for i := range 10_000 {
		w.add(messages("poison", fmt.Sprint(i)), now)
		w.came(fmt.Sprint(i))
		now = now.Add(time.Second)
	}
	if n := max(len(w.next), len(w.old)); n > 200 {
		t.Errorf("%d entries for one message that is expected", n)
	}
	w.came("poison")
	if w.next != nil || w.old != nil {
		t.Errorf("%d entries for none", len(w.next)+len(w.old))
	}
}

// The oldest of many is the oldest of those that are left, in whatever order they came
// and were given up.
func TestAwaiting_TheOldestIsOfWhatIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w awaiting
		left := make(map[string]time.Time)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "id"))
			if rapid.Bool().Draw(t, "comes") {
				w.came(id)
				delete(left, id)
			} else {
				at := epoch.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "at")) * time.Second)
				w.add([]*held{{id: id, eventTime: at}}, epoch)
				left[id] = at
			}
			var want time.Time
			for _, at := range left {
				want = earlier(want, at)
			}
			if got := w.oldest(epoch); !got.Equal(want) {
				t.Fatalf("the oldest of %v is %v", left, got)
			}
		}
	})
}

func BenchmarkAwaiting_Oldest(b *testing.B) {
	var w awaiting
	var hs []*held
	for i := range 500_000 {
		hs = append(hs, &held{id: fmt.Sprint(i), eventTime: epoch.Add(time.Duration(i*7919%500_000) * time.Second)})
	}
	w.add(hs, epoch)
	for b.Loop() {
		w.oldest(epoch)
	}
}
