package run

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A part records what a run asks of it.
type part struct {
	run       *Run
	err       error
	committed int
	closed    int
}

func (p *part) Commit() { p.committed++ }

func (p *part) Close(context.Context) {
	p.closed++
	p.run.Remove(p, p.err)
}

func TestRun_EndClosesThePartsAndReturnsWhatTheyCouldNotDo(t *testing.T) {
	r := Start(Finalized, true)
	if Find(r.RunID) != r || HasEnded(r.RunID) {
		t.Fatal("a run that has started is not found")
	}
	good, bad, gone := &part{run: r}, &part{run: r, err: errors.New("not acknowledged")}, &part{run: r}
	for _, p := range []*part{good, bad, gone} {
		if !r.Add(p) {
			t.Fatal("a part was refused")
		}
	}
	early := errors.New("early")
	r.Remove(gone, early)
	r.Remove(gone, errors.New("said already"))
	r.Commit()
	if err := r.End(t.Context()); !errors.Is(err, bad.err) || !errors.Is(err, early) || strings.Contains(err.Error(), "said already") {
		t.Errorf("End returned %v", err)
	}
	if good.closed != 1 || bad.closed != 1 || gone.closed != 0 || good.committed != 1 || gone.committed != 0 {
		t.Errorf("good %+v, bad %+v, gone %+v", good, bad, gone)
	}
	if Find(r.RunID) != nil || !HasEnded(r.RunID) {
		t.Error("a run that has ended is still found")
	}
	if r.Add(&part{run: r}) {
		t.Error("a run that has ended took a part that nothing closes")
	}
}

func TestRun_StopIsSeenByEverybodyAndMayComeTwice(t *testing.T) {
	r := Start(Finalized, true)
	defer func() { _ = r.End(t.Context()) }()
	select {
	case <-r.Stopping():
		t.Fatal("stopping before Stop")
	default:
	}
	r.Stop()
	r.Stop()
	<-r.Stopping()
}

// A worker elsewhere finds no run, and works all the same.
func TestRun_Nil(t *testing.T) {
	r := Find("of another process")
	if r != nil || HasEnded("of another process") {
		t.Fatal("found a run that was never started")
	}
	if !r.Add(&part{}) || r.Stopping() != nil {
		t.Error("a nil run does something")
	}
	r.Remove(&part{}, nil)
}

func TestBacklog_IsFullByCountOrBytes(t *testing.T) {
	r := Start(Finalized, true)
	b := r.Backlog()
	for _, add := range [][2]int64{{backlogMessages, 0}, {0, backlogBytes}} {
		if b.Full() {
			t.Error("full without anything in it")
		}
		b.Add(add[0], add[1])
		if !b.Full() {
			t.Errorf("not full with %v", add)
		}
		b.Add(-add[0], -add[1])
	}
	if (*Run)(nil).Backlog().Full() {
		t.Error("the backlog of no run is full")
	}
	(*Run)(nil).Backlog().Add(1, 1)
}
