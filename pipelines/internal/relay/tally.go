package relay

import (
	"sync"
	"sync/atomic"
)

// A tally is what the relay's own steps have done with messages in this process.
type tally struct {
	filtered  atomic.Int64 // were kept back by --filter
	topicless atomic.Int64 // had no topic to go to
}

// tallies are those of this process's relays, by nonce: Beam makes a step anew from its
// JSON.
var tallies sync.Map

func tallyOf(nonce string) *tally {
	t, _ := tallies.LoadOrStore(nonce, new(tally))
	return t.(*tally)
}
