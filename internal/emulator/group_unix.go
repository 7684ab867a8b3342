//go:build unix

package emulator

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
)

// inOwnGroup makes cmd the head of a process group, so that what it starts can
// be killed with it.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// killGroup kills cmd and its process group. That it has ended is no error.
func killGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill the Pub/Sub emulator: %w", err)
	}
	return nil
}
