package source

import (
	"fmt"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// messages makes held messages with those ids.
func messages(ids ...string) []*held {
	hs := make([]*held, len(ids))
	for i, id := range ids {
		hs[i] = &held{id: id, ackID: "ack-" + id, eventTime: epoch, size: 1}
	}
	return hs
}

func idsOf(items []*held) string {
	s := ""
	for _, h := range items {
		s += h.id
	}
	return s
}

// attempt claims the ledger with a token and stages messages.
func (l *ledger) attempt(token, parent, name string, ids ...string) (*attempt, string) {
	a, _, abandoned := l.claim(token, parent, name, epoch)
	l.stage(a, messages(ids...), epoch)
	return a, idsOf(abandoned)
}

func TestLedger_FinalizedCommitsTheAttemptAndItsAncestors(t *testing.T) {
	l := ledger{rule: run.Finalized}
	l.attempt("", "", "A", "1")
	l.attempt("A", "", "B", "2")
	l.attempt("B", "A", "C", "3")
	if got := idsOf(l.signal("B", finalize.Signal{Finished: 1, Arrived: 2})); got != "12" {
		t.Errorf("a signal for B committed %q, want 12", got)
	}
	if got := idsOf(l.signal("A", finalize.Signal{Finished: 1, Arrived: 3})); got != "" {
		t.Errorf("a late signal for A committed %q", got)
	}
	if l.owed != 1 {
		t.Errorf("%d messages are owed, want C's", l.owed)
	}
}

// Flink finalizes bundles that finished after the snapshot of the checkpoint that
// has completed; seen on a cluster: 24 messages would have been lost.
func TestLedger_TwoRoundsWaitsForABundleThatFinishedAfterTheFirstSignal(t *testing.T) {
	l := ledger{rule: run.TwoRounds}
	l.attempt("", "", "A", "1")
	l.attempt("A", "", "B", "2")
	for _, s := range []struct {
		token             string
		finished, arrived uint64
		want              string
	}{
		{"A", 1, 10, ""}, // the first round of A
		{"B", 9, 11, ""}, // B finished before that signal had come: same checkpoint
		{"B", 9, 30, ""}, // nor does another signal of the same bundle count
		{"B", 12, 31, "12"},
	} {
		if got := idsOf(l.signal(s.token, finalize.Signal{Finished: s.finished, Arrived: s.arrived})); got != s.want {
			t.Errorf("signal %+v committed %q, want %q", s, got, s.want)
		}
	}
}

// Dataflow's finalizations may be lost: the residual that comes back proves as much.
func TestLedger_ResumingAResidualCommitsItsLine(t *testing.T) {
	l := ledger{rule: run.FinalizedOrResumed}
	l.attempt("", "", "A", "1")
	l.attempt("A", "", "B", "2") // commits A
	if l.owed != 1 {
		t.Errorf("%d messages are owed, want B's", l.owed)
	}
	// Tried again: B's bundle has not committed, A's has.
	if _, abandoned := l.attempt("A", "", "C", "3"); abandoned != "2" {
		t.Errorf("abandoned %q, want 2", abandoned)
	}
	// What came after C ran on another worker.
	_, committed, abandoned := l.claim("elsewhere", "C", "E", epoch)
	if idsOf(committed) != "3" || idsOf(abandoned) != "" {
		t.Errorf("committed %q and abandoned %q, want 3 and nothing", idsOf(committed), idsOf(abandoned))
	}
}

func TestLedger_FailedAttemptReturnsItsMessagesOnly(t *testing.T) {
	l := ledger{rule: run.Finalized}
	l.attempt("", "", "A", "1")
	b, _ := l.attempt("A", "", "B", "2", "3")
	if got := idsOf(l.fail(b)); got != "23" {
		t.Errorf("failing B returned %q, want 23", got)
	}
	if !b.fenced.Load() {
		t.Error("a failed attempt may go on taking messages")
	}
	if got := idsOf(l.signal("A", finalize.Signal{Finished: 1, Arrived: 2})); got != "1" {
		t.Errorf("A's signal committed %q, want 1", got)
	}
}

// The same residual claimed twice: the first attempt was lost without a word, and
// its signals may still come.
func TestLedger_SecondClaimOfOneResidualVoidsTheFirst(t *testing.T) {
	l := ledger{rule: run.Finalized}
	l.attempt("", "", "A", "1")
	b, _ := l.attempt("A", "", "B", "2")
	_, abandoned := l.attempt("A", "", "C", "3")
	if abandoned != "2" || !b.fenced.Load() {
		t.Errorf("claiming A again abandoned %q, fenced %v; want 2 and true", abandoned, b.fenced.Load())
	}
	if got := idsOf(l.signal("B", finalize.Signal{Finished: 5, Arrived: 6})); got != "" {
		t.Errorf("the late signal of a void attempt committed %q", got)
	}
	if got := idsOf(l.signal("C", finalize.Signal{Finished: 7, Arrived: 8})); got != "13" {
		t.Errorf("C's signal committed %q, want 13", got)
	}
}

// Reassigned A to B and back to A: the attempt on the other worker is unknown
// here, its parent is not.
func TestLedger_ClaimByParentKeepsThePast(t *testing.T) {
	l := ledger{rule: run.Finalized}
	l.attempt("", "", "A", "1")
	l.attempt("A", "", "B", "2")
	_, abandoned := l.attempt("elsewhere", "A", "D", "4")
	if abandoned != "2" {
		t.Errorf("abandoned %q, want 2: A is the past of both", abandoned)
	}
}

func TestLedger_ClaimFromAnUnknownPastAbandonsEverything(t *testing.T) {
	l := ledger{rule: run.Finalized}
	l.attempt("", "", "A", "1")
	l.attempt("A", "", "B", "2")
	if _, abandoned := l.attempt("older", "oldest", "E", "5"); abandoned != "12" {
		t.Errorf("abandoned %q, want 12", abandoned)
	}
}

func TestLedger_EmptyAttemptsDoNotPileUp(t *testing.T) {
	l := ledger{rule: run.TwoRounds}
	token, parent := "", ""
	for i := range 1000 {
		name := fmt.Sprint(i)
		l.attempt(token, parent, name)
		token, parent = name, token
	}
	if n := len(l.attempts); n > 1 {
		t.Errorf("%d attempts are kept while nothing is owed", n)
	}
}
