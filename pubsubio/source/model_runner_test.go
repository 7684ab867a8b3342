package source

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// A modelKind is a kind of runner.
type modelKind int

const (
	// atomicResiduals commits a bundle together with its residual, and finalizes it
	// afterwards, as prism does. What it holds ends with its process; then the
	// pipeline is started anew.
	atomicResiduals modelKind = iota
	// workItems is the same over two workers, as Dataflow: an item that takes too
	// long is given to another worker, and back, while the first may still be at it;
	// only the newest can commit. Finalizations are often lost.
	workItems
	// checkpoints makes durable what was finished when a snapshot was taken, once
	// that is complete, and then finalizes every bundle that has finished, also those
	// that the snapshot does not hold, as Flink does. One checkpoint at a time, and
	// its notification comes before the next snapshot.
	checkpoints
)

// A modelPoint is a restriction, and what was emitted on the way to it.
type modelPoint struct {
	token, parent string
	before        *modelPoint
	emitted       []*modelMessage
	reports       []modelReport // of watermarks, by the bundle that led here
}

// A modelReport is a watermark and what had been received, and not emitted, before it
// was reported.
type modelReport struct {
	watermark time.Time
	unemitted map[string]bool
	process   *modelProcess
}

// A modelRunner runs one restriction over and over.
type modelRunner struct {
	kind      modelKind
	plan      modelPlan
	service   *modelService
	processes [2]*modelProcess
	ticks     uint64
	tokens    int
	starts    int // of processes

	now     *modelPoint    // what is claimed next
	current *modelBundle   // that the runner waits for; nil between bundles
	zombies []*modelBundle // that run though the runner waits for them no more
	pending []*modelBundle // whose finalization is outstanding

	snapshot *modelPoint // of the checkpoint under way; nil for none
	complete bool        // a checkpoint is, and nobody was told

	durable   *modelPoint // what a restore goes back to
	committed map[*modelMessage]bool
	next      map[string]int // of each key: how many of its messages were emitted
	calm      bool           // no call of the reader has failed
	fault     error          // the first promise that was broken
	trace     []string
}

func newModelRunner(p modelPlan) *modelRunner {
	w := &modelRunner{
		kind: p.kind, plan: p, service: newModelService(p.Conduct),
		calm: true, now: new(modelPoint), committed: make(map[*modelMessage]bool), next: make(map[string]int),
	}
	w.durable = w.now
	w.service.acked = func(m *modelMessage) {
		if !w.committed[m] {
			w.broken("%s was acknowledged, and what emitted it is not durable", m)
		}
	}
	for i := range w.processes {
		w.start(i)
	}
	return w
}

func (w *modelRunner) start(i int) {
	w.starts++
	w.processes[i] = &modelProcess{
		name: fmt.Sprint(string(rune('A'+i)), w.starts), client: &modelClient{service: w.service}, config: w.plan.config(),
		binding: run.Binding{Rule: w.plan.rule, Prism: w.plan.Prism},
	}
}

func (w *modelRunner) tick() uint64 { w.ticks++; return w.ticks }

func (w *modelRunner) broken(format string, args ...any) {
	if w.fault == nil {
		w.fault = fmt.Errorf(format, args...)
	}
}

func (w *modelRunner) log(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// begin starts a bundle on a process, in place of the one under way.
func (w *modelRunner) begin(process int) {
	w.giveUp()
	if w.kind != workItems {
		process = w.at()
	}
	p := w.processes[process]
	w.tokens++
	token := fmt.Sprint("t", w.tokens)
	r, a, err := p.enter(w.now, token)
	w.log("%s claims %s from %q of %q: %v", p.name, token, w.now.token, w.now.parent, err)
	if err == nil {
		w.current = &modelBundle{process: p, reader: r, attempt: a, from: w.now}
	} else if w.kind == checkpoints {
		w.restore()
	}
}

// at is the process where a runner that keeps to one does.
func (w *modelRunner) at() int { return w.plan.home }

// giveUp leaves the bundle under way to itself.
func (w *modelRunner) giveUp() {
	if w.current != nil {
		w.log("%s is given up", w.current.attempt.token)
		w.zombies = append(w.zombies, w.current)
		w.current = nil
	}
}

// take has a bundle emit, and fails it where it cannot.
func (w *modelRunner) take(b *modelBundle, n int) (ok bool) {
	if b == nil || b.has {
		return b != nil
	}
	had := len(b.emitted)
	err := b.take(w.service, n)
	w.log("%s takes %v: %v", b.attempt.token, b.emitted[had:], err)
	for _, m := range b.emitted[had:] {
		w.checkLate(b, m)
	}
	if err != nil {
		w.fail(b)
	}
	return err == nil
}

// checkLate sees to it that no watermark on the way to b was ahead of m while the
// reader had it.
func (w *modelRunner) checkLate(b *modelBundle, m *modelMessage) {
	for at := b.from; at != nil; at = at.before {
		for _, r := range at.reports {
			held := r.process == b.process && r.unemitted[m.id] && time.Since(m.came) < b.reader.config.WatermarkHoldLimit
			if held && r.watermark.After(m.publish) {
				w.broken("%s, of %v ago, was held and behind a watermark of %v ago", m, time.Since(m.publish), time.Since(r.watermark))
			}
		}
	}
}

// leave ends ProcessElement of a bundle, and fails it where it must not end well.
func (w *modelRunner) leave(b *modelBundle) (ok bool) {
	if b == nil {
		return false
	}
	if err := b.leave(); err != nil {
		w.log("%s leaves: %v", b.attempt.token, err)
		w.fail(b)
		return false
	}
	return true
}

// end ends a bundle well.
func (w *modelRunner) end(b *modelBundle) {
	if !w.leave(b) {
		return
	}
	b.finish(w.tick())
	if b != w.current {
		w.drop(b) // Its answer is not waited for: nothing of it is committed.
		w.log("%s ends too late", b.attempt.token)
		return
	}
	w.current = nil
	w.log("%s ends with %v", b.attempt.token, b.emitted)
	w.pending = append(w.pending, b)
	w.now = &modelPoint{token: b.attempt.token, parent: b.from.token, before: b.from, emitted: b.emitted}
	unemitted := b.process.unemitted(b.reader) // First: something may come meanwhile.
	if at := b.process.watermark(b.reader); !at.IsZero() {
		w.now.reports = []modelReport{{at, unemitted, b.process}}
	}
	if w.kind != checkpoints {
		w.commit(w.now)
	}
}

// fail ends a bundle with an error. A runner that keeps checkpoints goes back to the
// last.
func (w *modelRunner) fail(b *modelBundle) {
	if b == nil {
		return
	}
	w.log("%s fails", b.attempt.token)
	b.fail()
	if b != w.current {
		w.drop(b)
		return
	}
	w.current = nil
	if w.kind == checkpoints {
		w.restore()
	}
}

func (w *modelRunner) drop(b *modelBundle) {
	w.zombies = slices.DeleteFunc(w.zombies, func(z *modelBundle) bool { return z == b })
}

// commit makes a point durable, which builds on the last that was.
func (w *modelRunner) commit(p *modelPoint) {
	var way []*modelPoint
	for at := p; at != w.durable; at = at.before {
		way = append(way, at)
	}
	w.service.mu.Lock() // committed is read under it
	defer w.service.mu.Unlock()
	for _, at := range slices.Backward(way) {
		for _, m := range at.emitted {
			w.committed[m] = true
			w.checkOrder(m)
		}
	}
	w.durable = p
}

// checkOrder sees to it that m comes, for the first time, after all earlier ones of
// its key.
func (w *modelRunner) checkOrder(m *modelMessage) {
	if w.plan.config().Ordering == 0 || m.key == "" {
		return
	}
	switch of := slices.Index(w.service.keys[m.key], m); {
	case of == w.next[m.key]:
		w.next[m.key]++
	case of > w.next[m.key]:
		w.broken("%s of key %s was emitted before %s", m, m.key, w.service.keys[m.key][w.next[m.key]])
	}
}

// finalize has the n-th of the outstanding finalizations come, that many times.
func (w *modelRunner) finalize(n, times int) {
	if len(w.pending) == 0 {
		return
	}
	i := n % len(w.pending)
	b := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	w.log("%s is finalized %d times", b.attempt.token, times)
	for range times {
		b.finalize(w.tick())
	}
}

// snap begins a checkpoint: between bundles, and after the word of the last.
func (w *modelRunner) snap() {
	if w.current == nil && w.snapshot == nil && !w.complete {
		w.snapshot = w.now
		w.log("snapshot of %q", w.now.token)
	}
}

func (w *modelRunner) abort() {
	w.snapshot = nil
	w.log("the checkpoint is aborted")
}

func (w *modelRunner) completes() {
	if w.snapshot != nil {
		w.commit(w.snapshot)
		w.log("the checkpoint is complete")
		w.snapshot, w.complete = nil, true
	}
}

// notify finalizes everything that has finished, in an order of n's, but for some
// whose word is lost.
func (w *modelRunner) notify(n, lost int) {
	if !w.complete || w.current != nil {
		return // The runner's one thread runs a bundle.
	}
	w.complete = false
	for i := 0; len(w.pending) > 0; i++ {
		times := 1
		if lost > 4 && (n+i)%3 == 0 {
			times = 0
		}
		w.finalize(n, times)
	}
}

// restore goes back to what is durable. What was outstanding is forgotten.
func (w *modelRunner) restore() {
	w.giveUp()
	w.now, w.pending, w.snapshot, w.complete = w.durable, nil, nil, false
	w.log("restored to %q", w.now.token)
}

// kill ends a process and starts another in its place.
func (w *modelRunner) kill(process int) {
	if w.kind == atomicResiduals {
		process = w.at()
	}
	p := w.processes[process]
	p.kill()
	w.log("%s is killed", p.name)
	gone := func(b *modelBundle) bool { return b.process == p }
	w.zombies, w.pending = slices.DeleteFunc(w.zombies, gone), slices.DeleteFunc(w.pending, gone)
	if w.current != nil && gone(w.current) {
		w.current = nil
	}
	w.start(process)
	switch {
	case w.kind == atomicResiduals: // The job has ended with it: another begins.
		w.now = &modelPoint{before: w.durable}
		w.durable = w.now
	case w.kind == checkpoints && process == w.at():
		w.restore()
	}
}

// move has a runner that keeps to one process restore on the other, and leaves what
// runs on the first to itself.
func (w *modelRunner) move() {
	w.restore()
	w.plan.home = 1 - w.plan.home
}

// round runs a bundle to its end, with all that commits it.
func (w *modelRunner) round(process int) {
	w.begin(process)
	synctest.Wait()
	if w.take(w.current, 1<<20) {
		w.end(w.current)
	}
	if w.kind == checkpoints {
		w.snap()
		w.completes()
		w.notify(0, 0)
		return
	}
	for len(w.pending) > 0 {
		w.finalize(0, 1)
	}
}
