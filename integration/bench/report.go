package main

import (
	"encoding/json"
	"os"
	"runtime"
	"time"
)

// A report is everything that was measured.
type report struct {
	Go      string
	CPUs    int
	Started time.Time
	Rounds  int
	Warmup  int    // messages of every run that are not measured
	Axes    []axis `json:",omitempty"`
	Series  []*series
	Live    []*liveSeries `json:",omitempty"`
}

// A series is what one contestant did at one load.
type series struct {
	contestant
	load
	Messages int // of a run
	// Runs has one result for each round.
	Runs []result
}

func newReport(f flags) *report {
	return &report{
		Go: runtime.Version(), CPUs: runtime.NumCPU(), Started: time.Now(),
		Rounds: f.rounds, Warmup: f.warmup, Axes: f.axes(),
	}
}

// find returns the first series of a work at a load for which ok is true, or nil.
func (r *report) find(w work, l load, ok func(*series) bool) *series {
	for _, s := range r.Series {
		if s.Work == w && s.load == l && ok(s) {
			return s
		}
	}
	return nil
}

// reference returns the series that s is compared with: that of the program by
// hand on the client at its best settings, or where it did not run, the first of
// the same work.
func (r *report) reference(s *series) *series {
	if p := r.find(s.Work, s.load, func(o *series) bool { return o.Program == peer && len(o.Settings) == 0 }); p != nil {
		return p
	}
	return r.find(s.Work, s.load, func(*series) bool { return true })
}

// alone returns the series of the engine alone beside one of this module, or nil.
func (r *report) alone(s *series) *series {
	if s.Program != ours {
		return nil
	}
	return r.find(s.Work, s.load, func(o *series) bool { return o.Program == engine })
}

// same returns the series of s's contestant at another load, or nil.
func (r *report) same(s *series, l load) *series {
	return r.find(s.Work, l, func(o *series) bool { return o.name() == s.name() })
}

func (r *report) writeFile(name string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}
