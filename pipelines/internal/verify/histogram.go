package verify

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

// barWidth is how many columns the longest bar of a histogram takes.
const barWidth = 40

// printLatency writes the percentiles, and a histogram below them.
func printLatency(w io.Writer, l *latencies) {
	fmt.Fprintf(w, "latency  p50 %s   p90 %s   p99 %s   max %s\n\n",
		pretty(l.percentile(50)), pretty(l.percentile(90)), pretty(l.percentile(99)), pretty(l.most))
	bars := l.bars()
	var most int64
	for _, b := range bars {
		most = max(most, b.Count)
	}
	wide := len(program.Grouped(most))
	for _, b := range bars {
		block := blocks(float64(b.Count) / float64(most) * barWidth)
		fmt.Fprintf(w, "%7s – %-7s %s%s  %*s  %5.1f %%\n",
			pretty(b.From), prettyEnd(b.To), block, strings.Repeat(" ", barWidth-utf8.RuneCountInString(block)),
			wide, program.Grouped(b.Count), 100*float64(b.Count)/float64(l.count))
	}
}

// eighths are the blocks that fill one to seven eighths of a column.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// blocks is a bar of that many columns, to the eighth. One that is not empty shows.
func blocks(columns float64) string {
	n := int(math.Round(8 * columns))
	if n == 0 && columns > 0 {
		n = 1
	}
	return strings.Repeat("█", n/8) + eighths[n%8]
}

// pretty writes d with two or three figures and its unit.
func pretty(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return figures(float64(d)/float64(time.Microsecond)) + " µs"
	case d < time.Second:
		return figures(float64(d)/float64(time.Millisecond)) + " ms"
	default:
		return figures(d.Seconds()) + " s"
	}
}

func prettyEnd(d time.Duration) string {
	if d == math.MaxInt64 {
		return "…"
	}
	return pretty(d)
}

// figures writes a number below a thousand with three figures at most, and a larger
// one whole.
func figures(v float64) string {
	switch {
	case v < 10:
		return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
	case v < 100:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	default:
		return program.Grouped(int64(math.Round(v)))
	}
}
