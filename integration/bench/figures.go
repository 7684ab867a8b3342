package main

import "slices"

// figures are the same measure of each round of a series.
type figures []float64

func (f figures) sorted() figures { return slices.Sorted(slices.Values(f)) }

// median is the middle one, or the middle of the middle two.
func (f figures) median() float64 {
	s := f.sorted()
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func (f figures) min() float64 { return slices.Min(f) }

func (f figures) max() float64 { return slices.Max(f) }

// over returns f divided by other, round by round: what happened to the machine
// in a round happened to both.
func (f figures) over(other figures) figures {
	out := make(figures, min(len(f), len(other)))
	for i := range out {
		out[i] = f[i] / other[i]
	}
	return out
}

// minus returns f less other, round by round.
func (f figures) minus(other figures) figures {
	out := make(figures, min(len(f), len(other)))
	for i := range out {
		out[i] = f[i] - other[i]
	}
	return out
}

// per is a measure of every run of s, for each message.
func (s *series) per(of func(result) float64) figures {
	out := make(figures, len(s.Runs))
	for i, r := range s.Runs {
		out[i] = of(r) / float64(s.Messages)
	}
	return out
}

// cpu is in µs a message.
func (s *series) cpu() figures {
	return s.per(func(r result) float64 { return 1e6 * r.CPU })
}

// serverCPU is in µs a message.
func (s *series) serverCPU() figures {
	return s.per(func(r result) float64 { return 1e6 * r.ServerCPU })
}

// filling is how many messages a publish request has; none where nothing is
// published.
func (s *series) filling() figures {
	var out figures
	for _, r := range s.Runs {
		if r.Requests > 0 {
			out = append(out, float64(s.Messages)/float64(r.Requests))
		}
	}
	return out
}

// allocations are those of a message.
func (s *series) allocations() figures {
	return s.per(func(r result) float64 { return float64(r.Allocations) })
}

// peak is the most memory that any run had, in bytes.
func (s *series) peak() float64 {
	var most int64
	for _, r := range s.Runs {
		most = max(most, r.PeakRSS)
	}
	return float64(most)
}

// rate is in thousand messages a second.
func (s *series) rate() figures {
	out := s.per(func(r result) float64 { return r.Seconds })
	for i := range out {
		out[i] = 1e-3 / out[i]
	}
	return out
}
