package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// printTables prints a table for each axis, or for each work and load; doc.go says
// how to read it.
func printTables(w io.Writer, r *report) {
	fmt.Fprintf(w, "%d rounds, %s, %d CPUs\n", r.Rounds, r.Go, r.CPUs)
	for _, v := range variants {
		if slices.ContainsFunc(r.Series, func(s *series) bool { return s.Variant == v.name }) {
			fmt.Fprintf(w, "%s: %v\n", v.name, v.settings)
		}
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	printLive(out, r)
	if len(r.Axes) > 0 {
		for _, a := range r.Axes {
			printAxis(out, r, a)
		}
	} else {
		printLoads(out, r)
	}
	_ = out.Flush() // w has the error, and says it at its next write
}

// columns are the heads of the figures of printFigures.
func columns(reference string) string {
	return strings.Join([]string{
		"CPU µs", "min–max", "× " + reference, "min–max", "k/s", "min–max", "× " + reference, "min–max",
		"allocs", "in sink", "B alloc", "MB peak", "a request", "server µs",
	}, "\t")
}

// printLoads prints a table for each work at each load, with its contestants.
func printLoads(out *tabwriter.Writer, r *report) {
	var last *series
	for _, s := range r.Series {
		if last == nil || last.Work != s.Work || last.load != s.load {
			_ = out.Flush() // the next table has columns of its own
			fmt.Fprintf(out, "\n%s, %v\t%s\n", s.Work, s.load, columns(r.reference(s).name()))
		}
		last = s
		fmt.Fprintf(out, "%s\t%s\n", s.name(), r.figures(s))
	}
}

// printAxis prints the table of an axis: each contestant at each load, beside it
// what a message costs at that load, as a multiple of what it costs at the first.
func printAxis(out *tabwriter.Writer, r *report, a axis) {
	_ = out.Flush() // the next table has columns of its own
	first := a.Loads[0]
	fmt.Fprintf(out, "\n%s\t\t%s\tCPU × that at %s\n", a.Name, columns(peer), a.value(first))
	for _, l := range a.Loads {
		for _, s := range r.Series {
			if s.load != l {
				continue
			}
			growth := ""
			if base := r.same(s, first); base != nil && base != s {
				growth = ratio(s.cpu().over(base.cpu()))
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", a.value(l), s.fullName(), r.figures(s), growth)
		}
	}
}

// figures are a row's, one for each column.
func (r *report) figures(s *series) string {
	cpu, rate := s.cpu(), s.rate()
	digits := "%.0f"
	if rate.median() < 10 {
		digits = "%.1f"
	}
	cells := []string{fmt.Sprintf("%.2f", cpu.median()), spread("%.2f", cpu), "", "", fmt.Sprintf(digits, rate.median()), spread(digits, rate), "", ""}
	if p := r.reference(s); p != s {
		less, faster := p.cpu().over(cpu), rate.over(p.rate())
		cells[2], cells[3] = ratio(less), spread("%.2f", less)
		cells[6], cells[7] = ratio(faster), spread("%.2f", faster)
	}
	allocations := s.allocations()
	inSink := ""
	if e := r.alone(s); e != nil {
		inSink = fmt.Sprintf("%.2f", allocations.minus(e.allocations()).median())
	}
	requests := ""
	if filling := s.filling(); len(filling) > 0 {
		requests = fmt.Sprintf("%.0f", filling.median())
	}
	return strings.Join(append(cells,
		fmt.Sprintf("%.2f", allocations.median()),
		inSink,
		fmt.Sprintf("%.0f", s.per(func(r result) float64 { return float64(r.AllocBytes) }).median()),
		fmt.Sprintf("%.0f", s.peak()/1e6),
		requests,
		fmt.Sprintf("%.2f", s.serverCPU().median()),
	), "\t")
}

func ratio(f figures) string { return fmt.Sprintf("%.2f", f.median()) }

func spread(format string, f figures) string {
	return fmt.Sprintf(format+"–"+format, f.min(), f.max())
}
