package replay

import (
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func TestFlags_EachFault(t *testing.T) {
	good := []string{"--dead_letter_subscription=" + queueSub}
	for name, tc := range map[string]struct {
		args []string
		want string // whole
	}{
		"nothing":           {nil, "--dead_letter_subscription: []: must name at least one subscription"},
		"subscription":      {[]string{"--dead_letter_subscription=letters"}, `--dead_letter_subscription: subscription "letters": must have the form projects/<project>/subscriptions/<id>`},
		"destination":       {append(good, "--destination="+orders+",orders"), `--destination: "orders": must be the full name of a topic, projects/<project>/topics/<id>, or of a subscription`},
		"after":             {append(good, "--given_up_after=yesterday"), `invalid value "yesterday" for flag -given_up_after: must be a time as 2026-11-30T12:00:00Z`},
		"before":            {append(good, "--given_up_before=1"), `invalid value "1" for flag -given_up_before: must be a time as 2026-11-30T12:00:00Z`},
		"after before":      {append(good, "--given_up_after=2026-01-02T00:00:00Z", "--given_up_before=2026-01-01T00:00:00Z"), "--given_up_after: 2026-01-02T00:00:00Z: must be before --given_up_before (2026-01-01T00:00:00Z), or no letter is chosen"},
		"hops":              {append(good, "--max_hops=0"), "--max_hops: 0: must be at least 1"},
		"output":            {append(good, "--output_topic=out"), `--output_topic: topic "out": must have the form projects/<project>/topics/<id>`},
		"dead-letter topic": {append(good, "--dead_letter_topic=out"), `--dead_letter_topic: topic "out": must have the form projects/<project>/topics/<id>`},
		"circle":            {append(good, "--dead_letter_topic="+queueTopic, "--output_topic="+queueTopic), "--output_topic: " + queueTopic + ": must be another topic than that of the dead letters, or they would go round in circles"},
		"left":              {append(good, "--max_left=0"), "--max_left: 0: must be at least 1"},
		"left, negative":    {append(good, "--max_left=-1"), "--max_left: -1: must be at least 1"},
		"idle":              {append(good, "--stop_when_idle=0s"), "--stop_when_idle: 0s: must be at least 1ms: a replay ends by itself"},
		"idle, negative":    {append(good, "--stop_when_idle=-1s"), "--stop_when_idle: -1s: must be at least 1ms"},
		"duration":          {append(good, "--max_duration=1us"), "--max_duration: 1µs: must be at least 1ms"},
		"report":            {append(good, "--report=/no/such/r.json"), `--report: "/no/such/r.json": must be in a directory that exists`},
		"emulator":          {append(good, "--emulator_endpoint=here"), `--emulator_endpoint: "here": must be host:port`},
		"two endpoints":     {append(good, "--emulator_endpoint=h:1", "--pubsub_endpoint=h:2"), `--pubsub_endpoint: "h:2": must be empty beside --emulator_endpoint`},
		"runner":            {append(good, "--runner=direct"), "--runner: direct: must be prism: what is left is kept track of in its own process"},
		"unknown":           {append(good, "--subscription=x"), "flag provided but not defined: -subscription"},
		"argument":          {append(good, "now"), `unexpected argument: "now"`},
	} {
		t.Run(name, func(t *testing.T) {
			programtest.WantMisuse(t, "replay", Run, tc.args, tc.want)
		})
	}
}

func TestFlags_HelpIsAManual(t *testing.T) {
	programtest.WantManual(t, "replay", Run, "Replay publishes dead letters again", "\nWHICH LETTERS\n", "\nGUARANTEES\n", "\nWHAT TO REPLAY\n", "(default 30s)")
}

// What is missing or may not be used is told before a letter is read.
func TestReplay_WhatIsNotThereIsToldAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*pubsubtest.Server)
		args   []string
		want   string
	}{
		"no subscription": {func(srv *pubsubtest.Server) { _ = srv.DeleteSubscription(queueSub) }, nil, "--dead_letter_subscription: subscription " + queueSub + " does not exist"},
		"no topic":        {func(*pubsubtest.Server) {}, []string{"--output_topic=projects/p/topics/gone"}, "--output_topic: topic projects/p/topics/gone does not exist"},
		"its topic gone":  {func(srv *pubsubtest.Server) { _ = srv.DeleteTopic(queueTopic) }, nil, "its topic is deleted"},
		"no permission":   {func(srv *pubsubtest.Server) { srv.Deny("StreamingPull", queueSub) }, nil, "pubsub.subscriptions.consume"},
		"no server":       {func(srv *pubsubtest.Server) { srv.Stop() }, nil, "has not answered within 5s"},
		"its own topic":   {func(*pubsubtest.Server) {}, []string{"--output_topic=" + queueTopic}, "must be another topic than that of the dead letters"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			giveUp(t, srv, letter(orders, "one", "x"))
			tc.change(srv)
			o := replayAt(t.Context(), t, srv, tc.args...)
			o.MustEnd(t, program.ExitFailed)
			if !strings.Contains(o.Stderr, tc.want) || strings.Contains(o.Stderr, "panic") {
				t.Errorf("told:\n%s", o.Stderr)
			}
			want(t, srv, orders)
		})
	}
}

// A choice is a plain function of a letter; these are its bounds.
func TestChoice_Bounds(t *testing.T) {
	c := choice{after: yesterday, before: yesterday.Add(time.Second), maxHops: 2}
	entry := dlq.Entry{Kind: dlq.Envelope, Destination: orders, Time: yesterday, Hops: 1, Message: message.New([]byte("x"))}
	if topic, why := c.topicOf(entry); topic != orders || why != "" {
		t.Errorf("%q, %q", topic, why)
	}
	for name, change := range map[string]func(*dlq.Entry){
		"a moment too early": func(e *dlq.Entry) { e.Time = e.Time.Add(-1) },
		"at the end":         func(e *dlq.Entry) { e.Time = c.before },
		"no time":            func(e *dlq.Entry) { e.Time = time.Time{} },
		"hops":               func(e *dlq.Entry) { e.Hops = 2 },
	} {
		e := entry
		change(&e)
		if topic, why := c.topicOf(e); topic != "" || why == "" {
			t.Errorf("%s: goes to %q", name, topic)
		}
	}
}
