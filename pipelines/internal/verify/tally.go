package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/load"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// maxKeys bounds the memory of a tally that is not told which keys there are.
const maxKeys = 1_000_000

// firstLost is how many lost messages are named.
const firstLost = 5

// expectation is what has to arrive.
type expectation struct {
	report *load.Report // what loadgen has published; nil where that is not known
	count  int64        // else how many messages, 0 where not even that is known
	run    string       // of which run, any if empty
	poison bool         // poison has to arrive, too
}

// A tally is what has arrived, of which messages, in which order.
type tally struct {
	expectation
	complete chan struct{} // closed once everything expected has arrived

	mu   sync.Mutex // guards all below
	keys map[runKey]*sequences

	arrived, duplicated, reordered, poison, foreign int64
	poisonArrived                                   int64 // first copies
	latency                                         latencies
	last                                            time.Time // arrival
	done                                            bool      // complete is closed
}

// runKey is a key of a run.
type runKey struct{ run, key string }

func newTally(e expectation) *tally {
	t := &tally{expectation: e, complete: make(chan struct{}), keys: make(map[runKey]*sequences)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeIfCompleteLocked() // A run may have published nothing.
	return t
}

var errTooManyKeys = errors.New("verify: more than 1,000,000 keys have arrived: they are not counted any more; name the run by --run_id, or by --expected")

// add counts a message that has arrived at that time.
func (t *tally) add(m *message.Message, at time.Time) error {
	id, ok := load.Identify(m.Attributes)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = at
	if !ok || !t.expects(id) {
		t.foreign++
		return nil
	}
	key := runKey{id.Run, id.Key}
	s := t.keys[key]
	if s == nil {
		if len(t.keys) == maxKeys {
			return errTooManyKeys
		}
		s = newSequences()
		// The texts are parts of the message, which would stay with them.
		t.keys[runKey{strings.Clone(id.Run), strings.Clone(id.Key)}] = s
	}
	if id.Poison {
		t.poison++
	}
	overtaken := id.Sequence < s.highest
	if !s.add(id.Sequence) {
		t.duplicated++
		return nil
	}
	t.arrived++
	if id.Poison {
		t.poisonArrived++
	}
	if overtaken {
		t.reordered++
	}
	t.latency.add(at.Sub(id.Sent))
	t.closeIfCompleteLocked()
	return nil
}

// expects reports whether id is one of the messages to be counted.
func (e expectation) expects(id load.Identity) bool {
	if e.report != nil {
		return id.Run == e.report.Run && id.Sequence < e.report.Keys[id.Key]
	}
	return e.run == "" || id.Run == e.run
}

func (t *tally) closeIfCompleteLocked() {
	if t.done || (t.report == nil && t.count == 0) || t.lostLocked() > 0 {
		return
	}
	t.done = true
	close(t.complete)
}

// lostLocked is how many messages are missing so far.
func (t *tally) lostLocked() int64 {
	switch {
	case t.report == nil && t.count > 0:
		return max(t.count-t.arrived, 0)
	case t.report == nil:
		return t.gapsLocked()
	case t.expectation.poison:
		return t.report.Published - t.arrived
	}
	return (t.report.Published - t.report.Poison) - (t.arrived - t.poisonArrived)
}

// gapsLocked is how many numbers are missing below the highest of their keys.
func (t *tally) gapsLocked() (n int64) {
	for _, s := range t.keys {
		n += s.highest + 1 - s.count
	}
	return n
}

// awaitQuiet returns once everything expected has arrived and nothing more for linger,
// or when ctx ends.
func (t *tally) awaitQuiet(ctx context.Context, linger time.Duration) error {
	select {
	case <-t.complete:
	case <-ctx.Done():
		return ctx.Err()
	}
	wait := time.NewTimer(linger)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		t.mu.Lock()
		left := linger - time.Since(t.last)
		t.mu.Unlock()
		if left <= 0 {
			return nil
		}
		wait.Reset(left)
	}
}

// lostNames names the first few lost messages of those that are known by name, as
// key-0003/17: those of a report, or those in gaps.
func (t *tally) lostNames() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	if t.report == nil {
		for _, key := range slices.SortedFunc(maps.Keys(t.keys), compareKeys) {
			s := t.keys[key]
			s.absent(s.highest, func(n int64) bool {
				names = append(names, fmt.Sprintf("%s/%d", key.key, n))
				return len(names) < firstLost
			})
			if len(names) == firstLost {
				break
			}
		}
		return names
	}
	stream := t.report.Stream()
	for k := range stream.Keys {
		name := load.Key(k)
		s := t.keys[runKey{t.report.Run, name}]
		if s == nil {
			s = newSequences()
		}
		s.absent(t.report.Keys[name], func(n int64) bool {
			if t.expectation.poison || !stream.Poisoned(stream.Index(k, n)) {
				names = append(names, fmt.Sprintf("%s/%d", name, n))
			}
			return len(names) < firstLost
		})
		if len(names) == firstLost {
			break
		}
	}
	return names
}

func compareKeys(a, b runKey) int {
	if c := strings.Compare(a.run, b.run); c != 0 {
		return c
	}
	return strings.Compare(a.key, b.key)
}
