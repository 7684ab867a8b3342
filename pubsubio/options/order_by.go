package options

import "fmt"

// An OrderBy says which order a sink keeps for an ordering key, beside
// [Publisher.EnableMessageOrdering].
type OrderBy int

const (
	// OrderInPlace keeps the order in which a worker is given a key's records. That
	// is an order only behind a producer that hands a key to one bundle at a time,
	// such as a read PerKey or a keyed step: bundles that run at once interleave.
	OrderInPlace OrderBy = iota
	// OrderByKey brings all records of a key to one place first, through a shuffle,
	// and restores there, within a bundle and 16 MiB of it, the order in which each
	// process prepared its records. How those of different processes, or of different
	// bundles, follow each other is up to the runner; the comment of package sink says
	// what was observed.
	OrderByKey
)

func (o OrderBy) String() string {
	switch o {
	case OrderInPlace:
		return "options.OrderInPlace"
	case OrderByKey:
		return "options.OrderByKey"
	default:
		return fmt.Sprintf("options.OrderBy(%d)", int(o))
	}
}

// Faults records in f whether o is no order; field is how its user names it.
func (o OrderBy) Faults(f *Faults, field string) {
	if o != OrderInPlace && o != OrderByKey {
		f.Add(field, int(o), "must be options.OrderInPlace or options.OrderByKey")
	}
}
