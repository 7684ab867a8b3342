package source

import (
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A modelPlan is a schedule: what happens, in which order, and what the service and
// the reader are like.
type modelPlan struct {
	kind modelKind
	rule run.Rule
	home int // the process of a runner that keeps to one

	Conduct      modelConduct
	Prism        bool // the reader knows that the runner is
	Outstanding  int
	Buffer       int
	Streams      int
	MaxExtension time.Duration
	AwaitAck     time.Duration
	Steps        modelSteps
}

func (p modelPlan) config() Config {
	c := Config{}
	if p.Conduct.Ordered {
		c.Ordering = options.PerKey
	}
	c.Subscriber.MaxOutstandingMessages = p.Outstanding
	c.Subscriber.BufferMaxMessages = p.Buffer
	c.Subscriber.Streams = p.Streams
	c.Subscriber.MaxExtension = p.MaxExtension
	c.Subscriber.AwaitAckConfirmation = p.AwaitAck
	return c
}

// A modelStep does something with two numbers that say which, or how many.
type modelStep struct {
	do   string
	n, m int
}

type modelSteps []modelStep

// GoString is what rapid prints of a failing schedule.
func (ss modelSteps) GoString() string {
	var b strings.Builder
	for _, s := range ss {
		if s.do != "nothing" {
			fmt.Fprintf(&b, "%s(%d,%d); ", s.do, s.n, s.m)
		}
	}
	return b.String()
}

// pauses are how long time may go by between two steps: about a bundle, a lease, a
// park, the patience of an unclaimed reader.
var pauses = [...]time.Duration{10 * time.Millisecond, time.Second, 7 * time.Second, 25 * time.Second, 45 * time.Second, 70 * time.Second, 3 * time.Minute, 11 * time.Minute}

// modelDeeds are what may happen on any runner; a name that stands there twice is
// drawn twice as often.
var modelDeeds = map[string]func(w *modelRunner, n, m int){
	"nothing": func(*modelRunner, int, int) {}, // what a schedule shrinks to
	"publish": func(w *modelRunner, n, m int) {
		for range n%4 + 1 {
			w.service.publish([]string{"", "k", "l", "k"}[m%4], time.Duration(m)*3*time.Second)
		}
	},
	"begin": func(w *modelRunner, n, _ int) { w.begin(n % 2) },
	"take":  func(w *modelRunner, n, _ int) { w.take(w.current, n+1) },
	"leave": func(w *modelRunner, _, _ int) { w.leave(w.current) },
	"end":   func(w *modelRunner, _, _ int) { w.end(w.current) },
	"fail":  func(w *modelRunner, _, _ int) { w.fail(w.current) },
	"give up": func(w *modelRunner, _, _ int) {
		if w.kind == checkpoints {
			w.restore()
		}
		w.giveUp()
	},
	"bundle": func(w *modelRunner, n, m int) {
		w.begin(m % 2)
		if m < 6 {
			synctest.Wait() // What the claim returns comes again.
		}
		if n > 0 && !w.take(w.current, n) {
			return
		}
		w.end(w.current)
	},
	"zombie": func(w *modelRunner, n, m int) {
		if len(w.zombies) == 0 {
			return
		}
		z := w.zombies[n%len(w.zombies)]
		switch m {
		case 0:
			w.fail(z)
		case 1, 2:
			w.leave(z)
		case 3, 4:
			w.end(z)
		default:
			w.take(z, m)
		}
	},
	"pass":  func(_ *modelRunner, n, _ int) { pass(pauses[n]) },
	"lapse": func(w *modelRunner, n, _ int) { w.service.lapse(n) },
	"break": func(w *modelRunner, _, _ int) { w.service.breakStreams() },
	"fault": func(w *modelRunner, n, m int) {
		w.calm = false
		w.service.fault(modelCall(n%int(modelCalls)), modelFailure(m%int(modelFailures)), pauses[(n+m)%len(pauses)])
	},
	"kill":     func(w *modelRunner, n, _ int) { w.kill(n % 2) },
	"finalize": func(w *modelRunner, n, m int) { w.finalize(n, []int{1, 1, 1, 1, 2, 0, 0, 0}[m]) },
	"snapshot": func(w *modelRunner, _, _ int) { w.snap() },
	"complete": func(w *modelRunner, _, _ int) { w.completes() },
	"notify":   func(w *modelRunner, n, m int) { w.notify(n, m) },
	"abort":    func(w *modelRunner, _, _ int) { w.abort() },
	"restore":  func(w *modelRunner, _, _ int) { w.restore() },
	"move":     func(w *modelRunner, _, _ int) { w.move() },
}

// deedsOf says how often what happens on a kind of runner.
func deedsOf(kind modelKind) []string {
	often := map[string]int{
		"nothing": 1, "bundle": 6, "publish": 5, "begin": 3, "take": 4, "end": 4, "pass": 5, "leave": 1, "fail": 1,
		"give up": 1, "zombie": 3, "lapse": 2, "break": 1, "fault": 2, "kill": 1,
	}
	if kind == checkpoints {
		often["snapshot"], often["complete"], often["notify"] = 4, 4, 4
		often["abort"], often["restore"], often["move"] = 1, 1, 1
	} else {
		often["finalize"] = 5
	}
	var deeds []string
	for _, name := range []string{
		"nothing", "publish", "bundle", "finalize", "snapshot", "complete", "notify", "begin", "take", "end", "pass", "leave", "fail",
		"give up", "zombie", "lapse", "break", "fault", "kill", "restore", "abort", "move",
	} {
		for range often[name] {
			deeds = append(deeds, name)
		}
	}
	return deeds
}

// drawModelPlan draws what happens in a model of p's kind.
func drawModelPlan(t *rapid.T, p modelPlan) modelPlan {
	dice := rapid.IntRange(0, 7)
	deed := rapid.SampledFrom(deedsOf(p.kind))
	step := rapid.Custom(func(t *rapid.T) modelStep {
		return modelStep{deed.Draw(t, "do"), dice.Draw(t, "n"), dice.Draw(t, "m")}
	})
	seldom := func(name string) bool { return dice.Draw(t, name) == 7 }
	c := &p.Conduct
	c.Resends = c.Ordered && rapid.Bool().Draw(t, "acknowledged messages come again with earlier ones")
	c.OldAcks = rapid.IntRange(0, 2).Draw(t, "old ack ids count")
	c.Response = rapid.SampledFrom([]int{100, 2, 1}).Draw(t, "messages in a response")
	c.Backwards = rapid.Bool().Draw(t, "backwards")
	c.Late = rapid.Bool().Draw(t, "late")
	c.Deaf = seldom("deaf")
	p.Outstanding = rapid.SampledFrom([]int{1000, 3}).Draw(t, "outstanding")
	p.Buffer = rapid.SampledFrom([]int{1000, 2}).Draw(t, "buffer")
	if p.Streams = 1; !c.Ordered {
		p.Streams = rapid.IntRange(1, 2).Draw(t, "streams")
	}
	p.Prism = p.rule == run.Finalized && rapid.Bool().Draw(t, "prism")
	if p.MaxExtension = time.Hour; seldom("short extension") {
		p.MaxExtension = 40 * time.Second
	}
	if seldom("confirmation") {
		p.AwaitAck = 5 * time.Second
	}
	length := rapid.SampledFrom([]int{10, 25, 50, 80}).Draw(t, "length") // rapid's own choice is mostly under ten.
	p.Steps = rapid.Map(rapid.SliceOfN(step, length/2, length), func(ss []modelStep) modelSteps { return ss }).Draw(t, "steps")
	return p
}
