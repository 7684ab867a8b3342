package options

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A StartPosition says where in its subscriptions a read starts:
// [ContinueFromSubscription], which is the zero value, [EarliestRetained], [Latest]
// or [FromTimestamp].
//
// Any but the first moves each subscription by one seek when the job starts for the
// first time, after every subscription was found to be in order. A seek acknowledges
// what was published before its time and brings back what was published since and
// is retained; it concerns the subscription, and so everybody who reads from it. The
// service's clocks decide, and messages that were published within seconds of the
// time may fall on either side.
//
// # What a first start is
//
// The runner keeps what the startup has found out, so that workers that restart, an
// update of a Dataflow job and a restore on Flink do not seek again. A job that is
// submitted anew does. On prism, and on the direct runner, each run of the program
// is a first start.
//
// The startup runs again where its result was lost: a bundle that is retried, or a
// rollback on Flink to before the first checkpoint. It then seeks again, and to the
// same time: what was read in between comes again where it is retained, and nothing
// is skipped.
type StartPosition struct {
	from startFrom
	at   time.Time // of Latest, once stamped, and of FromTimestamp
}

type startFrom int

const (
	fromSubscription startFrom = iota
	fromEarliest
	fromLatest
	fromTimestamp
)

// startNames are how positions are called by users and in JSON.
var startNames = []string{"ContinueFromSubscription", "EarliestRetained", "Latest", "FromTimestamp"}

// ContinueFromSubscription reads on with what is not acknowledged. It is the
// default.
func ContinueFromSubscription() StartPosition { return StartPosition{} }

// EarliestRetained starts with the oldest message that the service still has: what
// is not acknowledged; of a subscription with RetainAckedMessages also what is,
// within its retention; and of a topic with a retention of its own all within that,
// also from before the subscription was created.
func EarliestRetained() StartPosition { return StartPosition{from: fromEarliest} }

// Latest starts with what is published from the construction of the pipeline on:
// the time at which Read was called, by the clock of the program that called it.
// What was published before is acknowledged, and nobody reads it.
func Latest() StartPosition { return StartPosition{from: fromLatest} }

// FromTimestamp starts with what was published at t or later, as far as it is not
// acknowledged or is retained as [EarliestRetained] says. What was published before
// is acknowledged, and nobody reads it; with a t in the future that goes for what is
// published until then.
func FromTimestamp(t time.Time) StartPosition {
	return StartPosition{from: fromTimestamp, at: t.UTC().Round(0)}
}

// At returns p with the time of construction filled in where p is [Latest] and has
// none. TryRead calls it.
func (p StartPosition) At(now time.Time) StartPosition {
	if p.from == fromLatest && p.at.IsZero() {
		p.at = now.UTC().Round(0)
	}
	return p
}

// SeekTime returns the time that subscriptions are moved to, and whether they are.
// Latest must have been given its time by [StartPosition.At].
func (p StartPosition) SeekTime() (time.Time, bool) {
	if p.from == fromEarliest {
		return time.Unix(0, 0).UTC(), true // Before Pub/Sub, and so before any retention.
	}
	return p.at, p.from != fromSubscription
}

// String returns p as a user writes it, with its time if it has one.
func (p StartPosition) String() string {
	if p.at.IsZero() {
		return "options." + startNames[p.from] + "()"
	}
	return "options." + startNames[p.from] + "(" + p.at.Format(time.RFC3339Nano) + ")"
}

// Faults records in f each rule that p breaks; field is how its user names it.
func (p StartPosition) Faults(f *Faults, field string) {
	if p.from != fromTimestamp {
		return
	}
	if p.at.IsZero() {
		f.Add(field, p, "must be given a time; options.EarliestRetained() is for all that is retained")
	} else if y := p.at.Year(); y < 1 || y > 9999 {
		f.Add(field, p, "must be in the years 1 to 9999")
	}
}

// startPositionJSON is how a position travels to the workers.
type startPositionJSON struct {
	From string    `json:"from"`
	At   time.Time `json:"at,omitzero"`
}

// MarshalJSON implements [json.Marshaler].
func (p StartPosition) MarshalJSON() ([]byte, error) {
	return json.Marshal(startPositionJSON{From: startNames[p.from], At: p.at})
}

// UnmarshalJSON implements [json.Unmarshaler]. A position that this build does not
// know is an error: a worker must not read from elsewhere.
func (p *StartPosition) UnmarshalJSON(b []byte) error {
	var j startPositionJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("options.StartPosition: %w", err)
	}
	from := slices.Index(startNames, j.From)
	if from < 0 {
		return fmt.Errorf("options.StartPosition: %q: this build knows no such position", j.From)
	}
	*p = StartPosition{from: startFrom(from), at: j.At}
	return nil
}
