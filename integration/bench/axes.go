package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An axis is a series of loads that differ in one thing.
type axis struct {
	Name  string
	Loads []load
}

// axisNames are those of --matrix, and the works that they are axes of.
var (
	axisNames   = []string{"size", "topics", "keys", "latency", "splits", "backlog"}
	axesOfWorks = map[work][]string{
		toTopic:   {"size", "topics", "keys", "latency"},
		fromTopic: {"size", "splits", "backlog", "keys"},
	}
)

// allAxes is what --matrix says for every axis of the work.
const allAxes = "all"

// axisOf returns the loads along an axis, which are base in all else.
func axisOf(name string, base load) axis {
	a := axis{Name: name}
	add := func(change func(*load)) {
		l := base
		change(&l)
		a.Loads = append(a.Loads, l)
	}
	switch name {
	case "size":
		for _, n := range []int{100, 1024, 10_240} {
			add(func(l *load) { l.Size = n })
		}
	case "topics":
		for _, n := range []int{1, 100, 1000} {
			add(func(l *load) { l.Topics = n })
		}
	case "keys":
		for _, n := range []int{0, 1, 100, 10_000} {
			add(func(l *load) { l.Keys = n })
		}
	case "latency":
		for _, d := range []time.Duration{0, 10 * time.Millisecond} {
			add(func(l *load) { l.Latency = d })
		}
	case "splits":
		for _, n := range []int{1, 4, 16} {
			add(func(l *load) { l.Splits = n })
		}
	case "backlog":
		for _, n := range []int{10_000, 100_000, 1_000_000, 10_000_000} {
			add(func(l *load) { l.Backlog = n })
		}
	}
	return a
}

// value is what l has of the axis.
func (a axis) value(l load) string {
	switch a.Name {
	case "size":
		return fmt.Sprintf("%d B", l.Size)
	case "topics":
		return strconv.Itoa(l.Topics)
	case "keys":
		return strconv.Itoa(l.Keys)
	case "splits":
		return strconv.Itoa(l.Splits)
	case "backlog":
		return strconv.Itoa(l.Backlog)
	default:
		return l.Latency.String()
	}
}

// parseAxes reads --matrix.
func parseAxes(v string) ([]string, error) {
	if v == allAxes {
		return []string{allAxes}, nil // which they are follows from the work
	}
	names := strings.Split(v, ",")
	for _, name := range names {
		if !slices.Contains(axisNames, name) {
			return nil, fmt.Errorf("%q is no axis: want all, or some of %s", name, strings.Join(axisNames, ","))
		}
	}
	return names, nil
}

// axes returns those of --matrix, through the one load that the other flags name.
func (f *flags) axes() []axis {
	var all []axis
	for _, name := range f.matrix {
		all = append(all, axisOf(name, f.crossed()[0]))
	}
	return all
}

// loads returns every load that is to be run, each once.
func (f *flags) loads() []load {
	if len(f.matrix) == 0 {
		return f.crossed()
	}
	var all []load
	for _, a := range f.axes() {
		for _, l := range a.Loads {
			if !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all
}

// crossed returns every combination of --size, --topics, --keys, --splits and
// --backlog.
func (f *flags) crossed() []load {
	all := []load{{Latency: f.latency}}
	cross := func(values []int, set func(*load, int)) {
		var next []load
		for _, l := range all {
			for _, v := range values {
				set(&l, v)
				next = append(next, l)
			}
		}
		all = next
	}
	cross(f.sizes, func(l *load, v int) { l.Size = v })
	cross(f.topics, func(l *load, v int) { l.Topics = v })
	cross(f.keys, func(l *load, v int) { l.Keys = v })
	cross(f.splits, func(l *load, v int) { l.Splits = v })
	cross(f.backlogs, func(l *load, v int) { l.Backlog = v })
	return all
}
