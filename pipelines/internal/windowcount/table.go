package windowcount

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

// emptyLabel stands for the label of messages that have none.
const emptyLabel = "(none)"

// maxLabel is how many columns a label takes in a table.
const maxLabel = 20

// table returns v as lines, its columns in line, none wider than that many columns:
// what does not fit goes to the others. With all a last line sums up.
func (v view) table(columns int, all bool) string {
	for {
		lines := v.lines(all)
		if len(v.labels) == 0 || utf8.RuneCountInString(lines[0]) <= columns {
			return strings.Join(lines, "\n") + "\n"
		}
		v = v.withoutLast()
	}
}

// withoutLast counts the last label among the others.
func (v view) withoutLast() view {
	n := len(v.labels) - 1
	narrow := func(r row) row {
		r.others += r.counts[n]
		r.counts = r.counts[:n]
		return r
	}
	out := view{labels: v.labels[:n], others: true, all: narrow(v.all)}
	for _, r := range v.rows {
		out.rows = append(out.rows, narrow(r))
	}
	return out
}

func (v view) lines(all bool) []string {
	head := []string{"window (UTC)"}
	for _, label := range v.labels {
		head = append(head, shortened(label))
	}
	if v.others {
		head = append(head, "others")
	}
	cells := [][]string{append(head, "total")}
	day, layout := "", v.layout()
	for _, r := range v.rows {
		name := r.name(layout)
		// The day is told where it changes.
		if d := r.start.Format("2006-01-02"); d != day {
			name, day = d+" "+name, d
		}
		cells = append(cells, v.cells(name, r))
	}
	if all {
		cells = append(cells, v.cells("all", v.all))
	}
	return aligned(cells)
}

func (v view) cells(name string, r row) []string {
	out := []string{name}
	for _, n := range r.counts {
		out = append(out, program.Grouped(n))
	}
	if v.others {
		out = append(out, program.Grouped(r.others))
	}
	return append(out, program.Grouped(r.total))
}

// layout is how the times of day of v's windows are written: as fine as any of them
// needs.
func (v view) layout() string {
	layout := "15:04"
	for _, r := range v.rows {
		switch {
		case r.start.Nanosecond() != 0 || r.end.Nanosecond() != 0:
			return "15:04:05.000"
		case r.start.Second() != 0 || r.end.Second() != 0:
			layout = "15:04:05"
		}
	}
	return layout
}

// name tells a window as its times of day. The end has its day where it is not the one
// that a reader takes it for.
func (s span) name(layout string) string {
	end := s.end.Format(layout)
	if s.end.Sub(s.start) >= 24*time.Hour {
		end = s.end.Format("2006-01-02 ") + end
	}
	return s.start.Format(layout) + " – " + end
}

// aligned pads cells so that columns are in line, all to the right.
func aligned(cells [][]string) []string {
	var widths []int
	for _, row := range cells {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var lines []string
	for _, row := range cells {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + cell)
		}
		lines = append(lines, b.String())
	}
	return lines
}

// shortened returns a label that fits into a column, and cannot move the cursor.
func shortened(label string) string {
	label = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, label)
	switch {
	case label == "":
		return emptyLabel
	case utf8.RuneCountInString(label) > maxLabel:
		return string([]rune(label)[:maxLabel-1]) + "…"
	}
	return label
}

// sentences tells each window of v in a line, where there is no table.
func (v view) sentences() string {
	var b strings.Builder
	layout := v.layout()
	for _, r := range v.rows {
		fmt.Fprintf(&b, "%s %s  %s", r.start.Format("2006-01-02"), r.name(layout), program.Grouped(r.total))
		for i, label := range v.labels {
			if r.counts[i] > 0 {
				fmt.Fprintf(&b, "  %s %s", shortened(label), program.Grouped(r.counts[i]))
			}
		}
		if r.others > 0 {
			fmt.Fprintf(&b, "  others %s", program.Grouped(r.others))
		}
		b.WriteString("\n")
	}
	return b.String()
}
