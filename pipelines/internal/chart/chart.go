// Package chart draws what the programs under pipelines have counted, as SVG: histograms
// of durations, and counts over time. It has one size and one style.
package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

// The size of a chart.
const (
	width  = 9 * vg.Inch
	height = 4.5 * vg.Inch
	margin = 12 // points
)

var (
	ink   = color.RGBA{0x33, 0x33, 0x33, 0xff}
	faint = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
)

// colors tell the lines of a chart apart, also to those who do not see red and green
// apart: Okabe and Ito's, the yellow left out, which is too light for a line.
var colors = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, // blue
	{0xd5, 0x5e, 0x00, 0xff}, // vermilion
	{0x00, 0x9e, 0x73, 0xff}, // green
	{0xcc, 0x79, 0xa7, 0xff}, // purple
	{0xe6, 0x9f, 0x00, 0xff}, // orange
	{0x56, 0xb4, 0xe9, 0xff}, // light blue
	{0x00, 0x00, 0x00, 0xff}, // black
}

// MaxLines is how many lines have a color of their own.
const MaxLines = 7

// newPlot returns an empty chart in the one style.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Title.Padding = title, vg.Points(10)
	set(&p.Title.TextStyle, 13)
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		set(&a.Label.TextStyle, 10)
		set(&a.Tick.Label, 9)
		a.Color, a.Tick.Color = ink, ink
		a.Width, a.Tick.Width = vg.Points(0.5), vg.Points(0.5)
		a.Tick.Length, a.Label.Padding, a.Padding = vg.Points(4), vg.Points(6), vg.Points(4)
	}
	set(&p.Legend.TextStyle, 9)
	p.Y.Min, p.Y.Tick.Marker = 0, plot.TickerFunc(countTicks)
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal.Color, grid.Horizontal.Width = faint, vg.Points(0.5)
	p.Add(grid)
	return p
}

// set gives a text the font of all of them.
func set(t *text.Style, points float64) {
	t.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(points)}
	t.Color = ink
}

// countTicks are ticks at whole numbers: 1, 2 or 5 times a power of ten apart.
func countTicks(least, most float64) []plot.Tick {
	step := 1.0
	for i := 0; (most-least)/step > 6; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	var ticks []plot.Tick
	for v := math.Ceil(least/step) * step; v <= most; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: program.Grouped(int64(v))})
	}
	return ticks
}

// save draws p into a file, as SVG.
func save(p *plot.Plot, path string) error {
	var svg bytes.Buffer
	if err := render(p, &svg); err != nil {
		return err
	}
	return program.WriteOutput(path, svg.Bytes())
}

func render(p *plot.Plot, w io.Writer) error {
	canvas := vgsvg.New(width, height)
	whole := draw.Crop(draw.New(canvas), margin, -margin, margin, -margin)
	// The legend stands beside the lines, not among them.
	legend := p.Legend
	p.Legend = plot.NewLegend()
	if beside := legend.Rectangle(whole).Size().X; beside > 0 {
		p.Draw(draw.Crop(whole, 0, -beside-2*margin, 0, 0))
		legend.Draw(draw.Crop(whole, whole.Size().X-beside, 0, 0, -3*margin))
	} else {
		p.Draw(whole)
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	// The canvas names the font alone; where that is not installed, Arial has letters of
	// the same width.
	_, err := w.Write(bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")))
	return err
}

// A Bar is a column of a histogram of durations.
type Bar struct {
	From, To time.Duration
	Count    int64
}

// A Mark is a duration that is named in a histogram.
type Mark struct {
	Name string
	At   time.Duration
}

// Durations draws a histogram of durations into a file, on a logarithmic axis, with
// lines where the marks are. There must be a bar, and none begins at zero.
func Durations(path, title, x, y string, bars []Bar, marks []Mark) error {
	p := newPlot(title, x, y)
	bins := make([]plotter.HistogramBin, len(bars))
	top := 0.0
	for i, b := range bars {
		bins[i] = plotter.HistogramBin{Min: logOf(b.From), Max: logOf(b.To), Weight: float64(b.Count)}
		top = max(top, float64(b.Count))
	}
	p.Add(&plotter.Histogram{Bins: bins, FillColor: colors[0], LineStyle: draw.LineStyle{Color: color.White, Width: vg.Points(0.5)}})
	// Room for the names of the marks, each at a height of its own: they may be close.
	p.Y.Max = top * (1.05 + nameHeight*float64(len(marks)))
	for i, m := range marks {
		if err := mark(p, m, p.Y.Max-top*nameHeight*(float64(i)+0.5)); err != nil {
			return err
		}
	}
	p.X.Tick.Marker = plot.TickerFunc(durationTicks)
	return save(p, path)
}

// nameHeight is how high the name of a mark is, in highest bars.
const nameHeight = 0.055

func mark(p *plot.Plot, m Mark, top float64) error {
	line, err := plotter.NewLine(plotter.XYs{{X: logOf(m.At), Y: 0}, {X: logOf(m.At), Y: top}})
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: colors[1], Width: vg.Points(1), Dashes: []vg.Length{vg.Points(3), vg.Points(2)}}
	name, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: logOf(m.At), Y: top}}, Labels: []string{m.Name}})
	if err != nil {
		return err
	}
	set(&name.TextStyle[0], 9)
	name.TextStyle[0].Color, name.TextStyle[0].YAlign = colors[1], draw.YCenter
	name.Offset = vg.Point{X: vg.Points(3)}
	p.Add(line, name)
	return nil
}

// logOf is where a duration lies on a logarithmic axis.
func logOf(d time.Duration) float64 { return math.Log10(max(d.Seconds(), 1e-9)) }

// durationTicks are ticks at powers of ten, with those at two and five times them
// where there is room, and names.
func durationTicks(least, most float64) []plot.Tick {
	var ticks []plot.Tick
	for e := math.Floor(least); e <= math.Ceil(most); e++ {
		for _, m := range []float64{1, 2, 5} {
			v := e + math.Log10(m)
			if v < least || v > most {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || most-least < 3 {
				t.Label = durationLabel(m, int(e))
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// durationLabel writes m·10^e seconds, m 1, 2 or 5.
func durationLabel(m float64, e int) string {
	switch {
	case e < -6:
		return strconv.FormatFloat(m*math.Pow10(e+9), 'f', 0, 64) + " ns"
	case e < -3:
		return strconv.FormatFloat(m*math.Pow10(e+6), 'f', 0, 64) + " µs"
	case e < 0:
		return strconv.FormatFloat(m*math.Pow10(e+3), 'f', 0, 64) + " ms"
	default:
		return program.Grouped(int64(m*math.Pow10(e))) + " s"
	}
}

// A Line is counts over time.
type Line struct {
	Name   string
	Times  []time.Time
	Counts []int64
}

// fewPoints is how many points of a line are drawn as such, so that one alone shows.
const fewPoints = 60

// OverTime draws lines over time into a file, seven at most, each with points at its
// times. There must be one.
func OverTime(path, title, y string, lines []Line) error {
	if len(lines) > MaxLines {
		return fmt.Errorf("chart: %d lines: at most %d can be told apart", len(lines), MaxLines)
	}
	p := newPlot(title, "", y)
	p.X.Tick.Marker = plot.TickerFunc(timeTicks)
	for i, l := range lines {
		points := make(plotter.XYs, len(l.Times))
		for j, t := range l.Times {
			points[j] = plotter.XY{X: onAxis(t), Y: float64(l.Counts[j])}
			p.Y.Max = max(p.Y.Max, points[j].Y*1.05)
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("chart: line %q: %w", l.Name, err)
		}
		line.LineStyle = draw.LineStyle{Color: colors[i], Width: vg.Points(1.5)}
		p.Add(line)
		p.Legend.Add(l.Name, line)
		if len(points) <= fewPoints {
			dots.GlyphStyle = draw.GlyphStyle{Color: colors[i], Radius: vg.Points(2.2), Shape: draw.CircleGlyph{}}
			p.Add(dots)
		}
	}
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(4)
	return save(p, path)
}
