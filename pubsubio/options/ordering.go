package options

import "fmt"

// An Ordering says which order a read keeps.
type Ordering int

const (
	// Unordered keeps no order, and lets a subscription be read by as many splits
	// and streams as are asked for.
	Unordered Ordering = iota
	// PerKey emits the messages of an ordering key in the order in which they were
	// published. A subscription is then read by one split over one stream, and must
	// have been created with message ordering.
	PerKey
)

func (o Ordering) String() string {
	switch o {
	case Unordered:
		return "options.Unordered"
	case PerKey:
		return "options.PerKey"
	default:
		return fmt.Sprintf("options.Ordering(%d)", int(o))
	}
}

// Faults records in f whether o is no ordering; field is how its user names it.
func (o Ordering) Faults(f *Faults, field string) {
	if o != Unordered && o != PerKey {
		f.Add(field, int(o), "must be options.Unordered or options.PerKey")
	}
}
