package main

import (
	"context"
	"math"
	"time"
)

const (
	trialMessages = 2000 // at first
	mostMessages  = 20_000_000
)

// count returns how many messages c moves in about the time that f asks for, or
// the number that it does.
func (f flags) count(ctx context.Context, c contestant, l load) (int, error) {
	switch {
	case c.Program == example:
		return min(f.messages, exampleMessages), nil
	case l.Backlog > 0:
		return l.Backlog, nil
	}
	if f.duration == 0 {
		return f.messages, nil
	}
	return countIn(f.duration, func(n int) (float64, error) {
		res, err := run[result](ctx, f.task(c, l, n))
		return res.Seconds, err
	})
}

// countIn returns how many messages move in about d, given a trial that tells how
// many seconds a number of them takes. It tries more and more of them, until they
// take a quarter of d: starting a program, and half a second in which a request may
// fill, hide the rate of fewer.
func countIn(d time.Duration, trial func(n int) (seconds float64, err error)) (int, error) {
	for n := trialMessages; ; {
		took, err := trial(n)
		if err != nil {
			return 0, err
		}
		if took >= d.Seconds()/4 || n == mostMessages {
			return min(mostMessages, messagesIn(d, n, took)), nil
		}
		growth := min(8, max(2, d.Seconds()/2/took))
		n = min(mostMessages, int(growth*float64(n)))
	}
}

// messagesIn returns how many messages go into d if n took so many seconds, in two
// digits.
func messagesIn(d time.Duration, n int, seconds float64) int {
	m := float64(n) / seconds * d.Seconds()
	unit := math.Pow(10, max(0, math.Floor(math.Log10(m))-1))
	return max(1, int(math.Round(m/unit)*unit))
}

// task is one run of c.
func (f flags) task(c contestant, l load, messages int) task {
	warm := f.warmup
	if c.Program == example {
		warm = 0 // it would not come to an end
	}
	return task{Contestant: c, Load: l, Messages: map[Phase]int{warmup: warm, measured: messages}}
}
