// Package panics turns the panics of a user's functions into errors that say
// which function it was and where: the engine's own text has the stack of the
// engine.
package panics

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Recover is to be deferred by whoever calls a function of the user. It makes a
// panic an error, such as "encoder pkg.encodeOrder panicked at orders.go:12: boom",
// of the kind and the name of the function.
//
//	func (fn *writeFn) encode(record any) (m *message.Message, err error) {
//		defer panics.Recover(&err, "encoder", fn.encoder.name)
//		return fn.encoder.encode(record)
//	}
func Recover(err *error, kind, name string) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s %s panicked%s: %v", kind, name, site(), r)
	}
}

// site says where the panic began that its calling function has recovered, as
// " at orders.go:12", or "" if it cannot tell.
func site() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	panicking := false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf(" at %s:%d", filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}
