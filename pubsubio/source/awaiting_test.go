package source

import (
	"fmt"
	"testing"
	"time"
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
	if n := len(w.next); n > 200 {
		t.Errorf("%d entries for one message that is expected", n)
	}
	w.came("poison")
	if w.next != nil {
		t.Errorf("%d entries for none", len(w.next))
	}
}
