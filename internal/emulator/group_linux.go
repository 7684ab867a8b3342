package emulator

import "syscall"

// dieWithParent lets no emulator outlive a test binary that is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
