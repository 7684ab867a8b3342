package options

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Faults collects what is wrong with a configuration, so that all of it is
// reported at once. The zero value is ready for use.
type Faults struct{ errs []error }

// Add records that field holds value, which breaks rule.
func (f *Faults) Add(field string, value any, rule string) {
	f.errs = append(f.errs, fmt.Errorf("%s: %v: %s", field, value, rule))
}

// AddError records err as it is.
func (f *Faults) AddError(err error) {
	if err != nil {
		f.errs = append(f.errs, err)
	}
}

// Err joins what was recorded, in order; nil when nothing was.
func (f *Faults) Err() error { return errors.Join(f.errs...) }

// atLeast records a value under a minimum.
func atLeast[T cmp.Ordered](f *Faults, field string, v, minimum T) {
	if v < minimum {
		f.Add(field, v, fmt.Sprintf("must be at least %v", minimum))
	}
}

// positiveOr records a number that is neither positive nor special, whose name
// is given.
func positiveOr[T int | int64](f *Faults, field string, v, special T, name string) {
	if v <= 0 && v != special {
		f.Add(field, v, "must be positive or "+name)
	}
}

// millis records a duration that is shorter than what the wire can carry: it
// counts in milliseconds.
func millis(f *Faults, field string, d time.Duration) {
	if d < time.Millisecond {
		f.Add(field, d, "must be at least 1ms")
	}
}

// millisOrDisabled is millis for a setting that Disabled turns off.
func millisOrDisabled(f *Faults, field string, d time.Duration) {
	if d < time.Millisecond && d != Disabled {
		f.Add(field, d, "must be at least 1ms or options.Disabled")
	}
}

// orDefault sets *v to d where it is zero.
func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
