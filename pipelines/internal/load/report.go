package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// A Report is what loadgen has published, as its --report writes it and verify's
// --expected reads it.
type Report struct {
	// Run, Topic and Ordering are what was asked for.
	Run      string `json:"run_id"`
	Topic    string `json:"topic"`
	Ordering bool   `json:"ordering"`
	// Complete says that Keys are what was published, all of it acknowledged by the
	// service. Without it the run has failed, and some of what it had sent may be
	// there or not.
	Complete bool `json:"complete"`
	// Published is how many messages the service has taken; of these, Poison is how
	// many are no JSON.
	Published   int64   `json:"published"`
	Poison      int64   `json:"poison"`
	PoisonShare float64 `json:"poison_share"`
	// Bytes is their serialized size.
	Bytes             int64   `json:"bytes"`
	Seconds           float64 `json:"seconds"`
	MessagesPerSecond float64 `json:"messages_per_second"`
	// KeyCount is how many keys took turns, and Keys how many messages each of them
	// that had one has: their numbers are 0 to one less.
	KeyCount int              `json:"key_count"`
	Keys     map[string]int64 `json:"keys"`
}

// ReadReport reads what WriteReport wrote, and checks that something can be verified
// by it. An error says what is wrong with the file.
func ReadReport(path string) (Report, error) {
	var r Report
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("is no report of loadgen: %w", err)
	}
	var sum int64
	for _, n := range r.Keys {
		if n < 0 {
			return r, errors.New("is no report of loadgen: a key has a negative count")
		}
		sum += n
	}
	switch {
	case r.Run == "" || r.KeyCount < 1:
		return r, errors.New("is no report of loadgen: it names no run")
	case !r.Complete:
		return r, errors.New("is the report of a run that failed: what it has published is not known")
	case sum != r.Published || len(r.Keys) > r.KeyCount:
		return r, fmt.Errorf("does not add up: its keys have %d messages, it says %d", sum, r.Published)
	}
	return r, nil
}

// Stream returns as much of the stream as a report tells: which messages it has, and
// which of them are poison.
func (r Report) Stream() Stream {
	return Stream{Run: r.Run, Keys: r.KeyCount, Poison: r.PoisonShare}
}
