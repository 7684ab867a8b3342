package panics

import (
	"regexp"
	"strings"
	"testing"
)

func call(f func()) (err error) {
	defer Recover(&err, "decoder", "pkg.f")
	f()
	return nil
}

func TestRecover_SaysWhereAPanicBegan(t *testing.T) {
	var none *struct{ field int }
	for name, f := range map[string]func(){
		"panic":         func() { panic("boom") },
		"runtime error": func() { none.field++ },
		"in a helper":   func() { _ = strings.Repeat("x", -1) },
	} {
		t.Run(name, func(t *testing.T) {
			err := call(f)
			if err == nil || !regexp.MustCompile(`^decoder pkg\.f panicked at (panics_test|strings)\.go:\d+: `).MatchString(err.Error()) {
				t.Errorf("error %v", err)
			}
		})
	}
	if err := call(func() {}); err != nil {
		t.Errorf("no panic: %v", err)
	}
}

func TestRecover_CostsNoAllocation(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { _ = call(func() {}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
