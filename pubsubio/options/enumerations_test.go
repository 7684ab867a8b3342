package options

import (
	"fmt"
	"testing"
)

// An enumeration's text is what a user writes.
func TestEnumerations(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"options.CreateIfNeeded": CreateIfNeeded, "options.CreateNever": CreateNever, "options.CreateDisposition(7)": CreateDisposition(7),
		"options.OrderInPlace": OrderInPlace, "options.OrderByKey": OrderByKey, "options.OrderBy(-1)": OrderBy(-1),
	} {
		if got.String() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	for _, c := range []struct {
		record func(*Faults, string)
		want   string
	}{
		{CreateNever.Faults, ""},
		{CreateDisposition(2).Faults, "f: 2: must be options.CreateIfNeeded or options.CreateNever"},
		{CreateDisposition(-1).Faults, "f: -1: must be options.CreateIfNeeded or options.CreateNever"},
		{OrderByKey.Faults, ""},
		{OrderBy(2).Faults, "f: 2: must be options.OrderInPlace or options.OrderByKey"},
		{OrderBy(-1).Faults, "f: -1: must be options.OrderInPlace or options.OrderByKey"},
	} {
		if got := faultsOf(func(f *Faults) { c.record(f, "f") }); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
