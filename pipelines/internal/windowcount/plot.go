package windowcount

import (
	"fmt"
	"io"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/chart"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

// maxPlotted is how many windows a plot shows: the latest of them.
const maxPlotted = 2000

// writePlot draws what b has into a file, a line for each of the labels that count the
// most and one for the others; where path is empty it does nothing, and where nothing was
// counted it says so.
func writePlot(path string, s settings, b *board, stderr io.Writer) error {
	if path == "" {
		return nil
	}
	v := b.view(maxPlotted, s.top)
	if len(v.rows) == 0 {
		return program.NothingToDraw("no window has counted", path, stderr)
	}
	var lines []chart.Line
	for i, label := range v.labels {
		lines = append(lines, v.line(shortened(label), s, func(r row) int64 { return r.counts[i] }))
	}
	if v.others {
		lines = append(lines, v.line("others", s, func(r row) int64 { return r.others }))
	}
	windows := "windows of " + short(s.window)
	if s.every != 0 {
		windows += ", one every " + short(s.every)
	}
	return chart.OverTime(path, fmt.Sprintf("Messages by %s, in %s", s.by(), windows), "messages in a window", lines)
}

// line is a count of each window, at the window's start. A window that has counted
// nothing at all is none of v: between two that are apart the line falls to zero.
func (v view) line(name string, s settings, count func(row) int64) chart.Line {
	l := chart.Line{Name: name}
	add := func(t time.Time, n int64) {
		l.Times, l.Counts = append(l.Times, t), append(l.Counts, n)
	}
	step := s.window
	if s.every != 0 {
		step = s.every
	}
	for i, r := range v.rows {
		if i > 0 {
			if before := v.rows[i-1].start; r.start.Sub(before) > step {
				add(before.Add(step), 0)
				if last := r.start.Add(-step); last.After(before.Add(step)) {
					add(last, 0)
				}
			}
		}
		add(r.start, count(r))
	}
	return l
}

// short writes a duration without the zeros at its end.
func short(d time.Duration) string {
	text := d.String()
	for _, zeros := range []string{"m0s", "h0m"} {
		if len(text) > len(zeros) && text[len(text)-len(zeros):] == zeros {
			text = text[:len(text)-len(zeros)+1]
		}
	}
	return text
}
