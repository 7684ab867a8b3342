package chart

import (
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
)

// onAxis is where a time lies on an axis, to the millisecond: seconds since 1970.
func onAxis(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// offAxis is the first whole millisecond that lies at v or later.
func offAxis(v float64) time.Time { return time.UnixMilli(int64(math.Ceil(v * 1000))).UTC() }

// steps are how far apart the ticks of a time axis may be, below a year.
var steps = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 56 * day, 112 * day, 168 * day,
}

const (
	day = 24 * time.Hour
	// secondsInYear are those of a mean year.
	secondsInYear = 365.2425 * 86400
	// manyYears is from how many on the ticks are at years.
	manyYears = 3
	// mostTicks is how many ticks an axis of time has at most.
	mostTicks = 12
)

// timeTicks are ticks at round times of day, or at round years. Spans are in float
// seconds: an event time may lie anywhere within 292,000 years of 1970, and a
// time.Duration ends at 292.
func timeTicks(least, most float64) []plot.Tick {
	if most-least > manyYears*secondsInYear {
		return yearTicks(least, most)
	}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if (most-least)/s.Seconds() <= 8 {
			step = s
			break
		}
	}
	layout := layoutOf(step, most-least)
	var ticks []plot.Tick
	for t := offAxis(least).Add(step - 1).Truncate(step); onAxis(t) <= most && len(ticks) < mostTicks; t = t.Add(step) {
		ticks = append(ticks, plot.Tick{Value: onAxis(t), Label: t.Format(layout)})
	}
	return ticks
}

// layoutOf is how ticks are written that are step apart, on an axis of so many seconds.
func layoutOf(step time.Duration, span float64) string {
	switch {
	case step < time.Second:
		return "15:04:05.0"
	case step < time.Minute:
		return "15:04:05"
	case step >= day && span > secondsInYear:
		return "2006-01-02"
	case step >= day:
		return "Jan 2"
	case span > day.Seconds():
		return "Jan 2 15:04"
	}
	return "15:04"
}

// yearTicks are ticks at the beginnings of years: 1, 2 or 5 times a power of ten apart.
func yearTicks(least, most float64) []plot.Tick {
	step := 1
	for i := 0; (most-least)/secondsInYear/float64(step) > 8; i++ {
		step = step * []int{4, 5, 4}[i%3] / 2
	}
	var ticks []plot.Tick
	first := int(math.Floor(float64(offAxis(least).Year())/float64(step))) * step
	for y := first; len(ticks) < mostTicks; y += step {
		v := onAxis(time.Date(y, time.January, 1, 0, 0, 0, 0, time.UTC))
		if v > most {
			break
		}
		if v >= least {
			ticks = append(ticks, plot.Tick{Value: v, Label: strconv.Itoa(y)})
		}
	}
	return ticks
}
