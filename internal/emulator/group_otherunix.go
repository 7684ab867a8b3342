//go:build unix && !linux

package emulator

import "syscall"

// dieWithParent does nothing where the system has no such signal.
func dieWithParent(*syscall.SysProcAttr) {}
