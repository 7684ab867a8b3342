package verify

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/chart"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

// perDecade is how many columns a plot has from a duration to ten times as much.
const perDecade = 20

// writePlot draws l into a file; where path is empty it does nothing, and where nothing
// has arrived it says so.
func writePlot(path string, l *latencies, stderr io.Writer) error {
	switch {
	case path == "":
		return nil
	case l.count == 0:
		return program.NothingToDraw("nothing has arrived", path, stderr)
	}
	title := fmt.Sprintf("Latency of %s messages", program.Grouped(l.count))
	return chart.Durations(path, title, "from publishing to reading", "messages", l.columns(), []chart.Mark{
		{Name: "p50 " + pretty(l.percentile(50)), At: l.percentile(50)},
		{Name: "p90 " + pretty(l.percentile(90)), At: l.percentile(90)},
		{Name: "p99 " + pretty(l.percentile(99)), At: l.percentile(99)},
		{Name: "max " + pretty(l.most), At: l.most},
	})
}

// columns returns the durations counted in columns of equal width on a logarithmic
// axis, from the first with something in it to the last.
func (l *latencies) columns() []chart.Bar {
	var out []chart.Bar
	first := 0
	for i, n := range l.buckets {
		if n == 0 {
			continue
		}
		// A column is seven buckets wide, or more: the upper end of one stands for it.
		c := int(math.Floor(perDecade * math.Log10(max(float64(upperEnd(i)-1), 1))))
		if len(out) == 0 {
			first = c
		}
		for len(out) <= c-first {
			at := first + len(out)
			out = append(out, chart.Bar{From: columnFrom(at), To: columnFrom(at + 1)})
		}
		out[c-first].Count += n
	}
	return out
}

// columnFrom returns where column c begins.
func columnFrom(c int) time.Duration {
	return time.Duration(math.Round(math.Pow(10, float64(c)/perDecade)))
}
