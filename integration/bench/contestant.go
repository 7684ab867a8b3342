package main

import (
	"context"
	"slices"
	"strings"
)

// A work is what contestants do in comparison.
type work string

const (
	relay     work = "relay"  // from a subscription to a topic
	fromTopic work = "source" // from a subscription into a counter
	toTopic   work = "sink"   // from memory to a topic
	live      work = "live"   // as source, while messages come at a rate
)

// works are those that are measured by the message.
var works = []work{relay, fromTopic, toTopic}

func (w work) known() bool { return w == live || slices.Contains(works, w) }

// The programs that compete. peer is the one that the others are compared with.
const (
	ours   = "pubsubio" // this module, on prism
	peer   = "client"   // by hand, on the Go client at its best settings
	stubs  = "stubs"    // by hand, on the generated gRPC stubs
	engine = "engine"   // prism alone: from memory into a counter
	// Beam's own example of a read, on prism; only where --example asks for it.
	example = "example"
)

// A program does its work until ctx ends, or until it is done where it can know.
type program func(ctx context.Context, j job) error

var programs = map[work]map[string]program{
	relay:     {ours: relayOurs, peer: relayClient, stubs: relayStubs},
	fromTopic: {ours: readOurs, peer: receiveClient, stubs: pullStubs, example: readExample},
	toTopic:   {ours: writeOurs, peer: publishClient, stubs: publishStubs, engine: runEngine},
}

// A variant is this module with options that have a name.
type variant struct {
	name     string
	works    []work
	settings settings
}

// variants are for throughput: the defaults are those of other Pub/Sub connectors.
var variants = []variant{
	{"tuned", []work{relay, toTopic}, settings{"BatchElementCount=1000", "MaxInFlightMessages=10000", "MaxActivePublishers=1000"}},
	// A bundle's end waits for its messages: the larger it is, the less do the
	// latency of the service and requests that it cuts short matter.
	{"wide", []work{toTopic}, settings{
		"BatchElementCount=1000", "BatchDelay=500ms", "MaxInFlightMessages=100000", "MaxInFlightBytes=200000000",
		"MaxActivePublishers=1000", "MaxRecordsPerBundle=100000",
	}},
}

// clientDefault is what a program on the client is whose author set nothing.
const clientDefault = "default"

// A contestant is a program with its settings.
type contestant struct {
	Work     work
	Program  string
	Variant  string   `json:",omitempty"` // a name for the settings
	Settings settings `json:",omitempty"`
}

// name tells contestants of one work apart.
func (c contestant) name() string {
	switch {
	case c.Variant != "":
		return c.Program + " " + c.Variant
	case len(c.Settings) > 0:
		return c.Program + " " + c.Settings.String()
	default:
		return c.Program
	}
}

// fullName tells contestants apart.
func (c contestant) fullName() string { return string(c.Work) + " " + c.name() }

// file is a name for a file.
func (c contestant) file() string {
	return strings.NewReplacer(" ", "-", "=", "").Replace(c.fullName())
}

// slowBacklog is the most that a client with its default settings is given: it reads
// 10,000 messages a second.
const slowBacklog = 100_000

// suits reports whether c is to run at l.
func (c contestant) suits(l load) bool {
	switch {
	case c.Program == example:
		return l.Splits == 1 && l.Backlog == 0 && l.Keys == 0
	case c.Variant == clientDefault:
		return l.Splits == 1 && l.Backlog <= slowBacklog
	default:
		return true
	}
}

// contestants returns who runs, in the order in which they run in a round.
func (f *flags) contestants() []contestant {
	var all []contestant
	for _, w := range f.work {
		all = append(all, f.ours(w)...)
		all = append(all, contestant{Work: w, Program: peer})
		if w == fromTopic {
			all = append(all, contestant{Work: w, Program: peer, Variant: clientDefault, Settings: settings{"MaxOutstandingMessages=1000"}})
		}
		for _, s := range f.clientWith {
			all = append(all, contestant{Work: w, Program: peer, Settings: s})
		}
		for _, p := range []string{stubs, engine, example} {
			if programs[w][p] != nil && (p != example || f.example) {
				all = append(all, contestant{Work: w, Program: p})
			}
		}
	}
	return slices.DeleteFunc(all, func(c contestant) bool { return !f.only.MatchString(c.fullName()) })
}

// ours is this module, in all of its variants.
func (f *flags) ours(w work) []contestant {
	all := []contestant{{Work: w, Program: ours}}
	for _, v := range variants {
		if slices.Contains(v.works, w) {
			all = append(all, contestant{Work: w, Program: ours, Variant: v.name, Settings: v.settings})
		}
	}
	for _, s := range f.with {
		all = append(all, contestant{Work: w, Program: ours, Settings: s})
	}
	return all
}
