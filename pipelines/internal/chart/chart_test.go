package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// drawn returns an SVG that draw has written, which must be an XML document.
func drawn(t *testing.T, draw func(path string) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chart.svg")
	if err := draw(path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(content)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return string(content)
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDurations_DrawsBarsAndNamesMarks(t *testing.T) {
	svg := drawn(t, func(path string) error {
		return Durations(path, "Latency <of> 3", "time", "messages",
			[]Bar{{From: time.Millisecond, To: 2 * time.Millisecond, Count: 2000}, {From: 2 * time.Millisecond, To: 4 * time.Millisecond, Count: 1}},
			[]Mark{{Name: "p50 1.5 ms", At: 1500 * time.Microsecond}})
	})
	for _, want := range []string{"Latency &lt;of&gt; 3", ">p50 1.5 ms<", ">1 ms<", ">2,000<", "Liberation Sans,Arial"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in the chart", want)
		}
	}
}

func TestOverTime_DrawsALineEach(t *testing.T) {
	svg := drawn(t, func(path string) error {
		return OverTime(path, "Messages", "in a window", []Line{
			{Name: "eu", Times: []time.Time{noon, noon.Add(time.Minute)}, Counts: []int64{5, 7}},
			{Name: "us", Times: []time.Time{noon}, Counts: []int64{3}},
		})
	})
	for _, want := range []string{">eu<", ">us<", ">12:00:00<", ">in a window<", "#0072B2", "#D55E00"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in the chart", want)
		}
	}
}

func TestOverTime_RefusesMoreLinesThanColors(t *testing.T) {
	if err := OverTime(filepath.Join(t.TempDir(), "x.svg"), "", "", make([]Line, MaxLines+1)); err == nil {
		t.Error("no error")
	}
}

func TestSave_TellsWhereItCannotWrite(t *testing.T) {
	err := OverTime(filepath.Join(t.TempDir(), "no", "x.svg"), "", "", []Line{{Name: "a", Times: []time.Time{noon}, Counts: []int64{1}}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// However long or short a range is, it has some ticks and not too many, each within it.
func TestTicks_AreFew(t *testing.T) {
	for _, span := range []time.Duration{300 * time.Millisecond, time.Second, 7 * time.Second, time.Minute, 50 * time.Minute, 5 * time.Hour, 40 * time.Hour, 30 * 24 * time.Hour, 3 * 365 * 24 * time.Hour} {
		least, most := onAxis(noon), onAxis(noon.Add(span))
		ticks := timeTicks(least, most)
		if len(ticks) < 2 || len(ticks) > 13 {
			t.Errorf("%v has %d ticks", span, len(ticks))
		}
		for _, tick := range ticks {
			if tick.Value < least || tick.Value > most || tick.Label == "" {
				t.Errorf("%v: %+v", span, tick)
			}
		}
	}
	for _, most := range []float64{1, 3, 10, 99, 1234, 1e6, 3.3e9} {
		ticks := countTicks(0, most)
		if len(ticks) < 2 || len(ticks) > 8 {
			t.Errorf("0 to %v has %d ticks", most, len(ticks))
		}
		for _, tick := range ticks {
			if tick.Value != math.Trunc(tick.Value) {
				t.Errorf("0 to %v: %+v", most, tick)
			}
		}
	}
	for _, seconds := range [][2]float64{{1e-9, 1e-8}, {0.0011, 0.0018}, {0.0011, 0.05}, {1e-6, 1000}} {
		ticks := durationTicks(math.Log10(seconds[0]), math.Log10(seconds[1]))
		if len(ticks) > 40 {
			t.Errorf("%v has %d ticks", seconds, len(ticks))
		}
	}
}

// An event time is somebody else's text: the start of the year 1 beside today was 6e11
// ticks, a tenth of a second apart, as 2025 years are no time.Duration.
func TestTicks_OfFarTimesAreFewToo(t *testing.T) {
	for _, from := range []time.Time{{}, time.UnixMilli(-9_223_372_036_854_775), time.Date(1677, 1, 1, 0, 0, 0, 0, time.UTC), noon} {
		for _, to := range []time.Time{noon.Add(time.Minute), noon.AddDate(1, 2, 0), noon.AddDate(4, 0, 0), noon.AddDate(290, 0, 0), noon.AddDate(800, 0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.UnixMilli(9_223_372_036_854_775)} {
			least, most := onAxis(from), onAxis(to)
			ticks := timeTicks(least, most)
			if len(ticks) < 2 || len(ticks) > mostTicks {
				t.Errorf("%v to %v has %d ticks", from, to, len(ticks))
			}
			for i, tick := range ticks {
				if tick.Value < least || tick.Value > most || tick.Label == "" || i > 0 && tick.Value <= ticks[i-1].Value {
					t.Errorf("%v to %v: %+v", from, to, tick)
				}
			}
		}
	}
}

func TestOverTime_DrawsFarTimes(t *testing.T) {
	svg := drawn(t, func(path string) error {
		return OverTime(path, "", "", []Line{{Name: "eu", Times: []time.Time{{}, noon}, Counts: []int64{1, 2}}})
	})
	for _, want := range []string{">500<", ">1000<", ">2000<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in the chart", want)
		}
	}
}

func TestDurationLabel(t *testing.T) {
	for _, tc := range []struct {
		m    float64
		e    int
		want string
	}{{1, -9, "1 ns"}, {5, -7, "500 ns"}, {2, -6, "2 µs"}, {5, -4, "500 µs"}, {1, -3, "1 ms"}, {2, -1, "200 ms"}, {1, 0, "1 s"}, {5, 3, "5,000 s"}} {
		if got := durationLabel(tc.m, tc.e); got != tc.want {
			t.Errorf("%v·10^%d is %q, want %q", tc.m, tc.e, got, tc.want)
		}
	}
}
