package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// raceLive has the contestants of live run in each situation, one after the other.
func raceLive(ctx context.Context, f flags, r *report, progress io.Writer) error {
	for _, l := range f.crossed() {
		for _, s := range situations {
			for _, c := range f.contestants() {
				if c.Work == live && slices.Contains(s.Programs, c.Program) {
					r.Live = append(r.Live, &liveSeries{contestant: c, Situation: s, Size: l.Size})
				}
			}
		}
	}
	for round := range f.rounds {
		for _, s := range r.Live {
			t := f.liveTask(s)
			t.CPUProfile = profileFile(f.cpuProfile, s.file(), round, "cpu")
			t.MemProfile = profileFile(f.memProfile, s.file(), round, "mem")
			res, err := run[liveResult](ctx, t)
			if err != nil {
				return fmt.Errorf("%s, %s, round %d: %w", s.fullName(), s.Situation.Name, round+1, err)
			}
			fmt.Fprintf(progress, "%s, round %d/%d, %s: %.1f %% of a core\n", s.Situation.Name, round+1, f.rounds, s.fullName(), res.share())
			s.Runs = append(s.Runs, res)
		}
	}
	return nil
}

// file is a name for a file.
func (s *liveSeries) file() string {
	return strings.NewReplacer(" ", "-", ",", "", "/", "-").Replace(s.contestant.file() + "-" + s.Situation.Name)
}

// share is what was used of a core, in percent.
func (r liveResult) share() float64 { return 100 * r.CPU / r.Seconds }

func (f flags) liveTask(s *liveSeries) task {
	d := f.duration
	if d == 0 {
		d = liveDuration
	}
	return task{
		Contestant: s.contestant, Load: load{Size: s.Size, Topics: 1, Splits: 1},
		Live: &liveTask{Situation: s.Situation, Duration: d},
	}
}

// printLive prints a table for each size.
func printLive(out *tabwriter.Writer, r *report) {
	size := 0
	for _, s := range r.Live {
		if s.Size != size {
			size = s.Size
			_ = out.Flush() // the next table has columns of its own
			fmt.Fprintf(out, "\nlive, %d B\t\t%% of a core\tmin–max\tpublish→emit p50 ms\tp99 ms\temit→ack p50 ms\tp99 ms\twindow fires p50 ms\tmax ms\n", size)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", s.Situation.Name, s.name(), s.row())
	}
}

// row has the median of the rounds in each column, and nothing where nothing
// happened.
func (s *liveSeries) row() string {
	of := func(f func(liveResult) float64) figures {
		var all figures
		for _, r := range s.Runs {
			all = append(all, f(r))
		}
		return all
	}
	share := of(liveResult.share)
	cells := []string{fmt.Sprintf("%.1f", share.median()), spread("%.1f", share)}
	for _, f := range []struct{ n, of func(liveResult) float64 }{
		{func(r liveResult) float64 { return float64(r.Emit.N) }, func(r liveResult) float64 { return r.Emit.P50 }},
		{func(r liveResult) float64 { return float64(r.Emit.N) }, func(r liveResult) float64 { return r.Emit.P99 }},
		{func(r liveResult) float64 { return float64(r.Ack.N) }, func(r liveResult) float64 { return r.Ack.P50 }},
		{func(r liveResult) float64 { return float64(r.Ack.N) }, func(r liveResult) float64 { return r.Ack.P99 }},
		{func(r liveResult) float64 { return float64(r.Window.N) }, func(r liveResult) float64 { return r.Window.P50 }},
		{func(r liveResult) float64 { return float64(r.Window.N) }, func(r liveResult) float64 { return r.Window.Max }},
	} {
		if of(f.n).max() == 0 {
			cells = append(cells, "")
			continue
		}
		cells = append(cells, fmt.Sprintf("%.2f", of(f.of).median()))
	}
	return strings.Join(cells, "\t")
}
