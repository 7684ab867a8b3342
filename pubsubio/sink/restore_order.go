package sink

import (
	"cmp"
	"slices"
)

// restoreOrder puts the messages of each process into the order in which that one
// prepared them, in the places that they occupy: how messages of different processes
// stand to each other is left as they arrived.
func restoreOrder(messages []keyed) {
	if inOrder(messages) {
		return
	}
	places := make(map[uint64][]int)
	for i, k := range messages {
		places[k.Origin] = append(places[k.Origin], i)
	}
	for _, at := range places {
		sorted := make([]keyed, len(at))
		for i, place := range at {
			sorted[i] = messages[place]
		}
		slices.SortFunc(sorted, func(a, b keyed) int { return cmp.Compare(a.Number, b.Number) })
		for i, place := range at {
			messages[place] = sorted[i]
		}
	}
}

// inOrder reports whether messages are of one process and in order: as a rule.
func inOrder(messages []keyed) bool {
	return slices.IsSortedFunc(messages, func(a, b keyed) int {
		if a.Origin != b.Origin {
			return -1 // not to be told here
		}
		return cmp.Compare(a.Number, b.Number)
	})
}
