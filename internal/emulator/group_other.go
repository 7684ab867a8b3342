//go:build !unix

package emulator

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// inOwnGroup does nothing where there are no process groups.
func inOwnGroup(*exec.Cmd) {}

// killGroup kills cmd alone. That it has ended is no error.
func killGroup(cmd *exec.Cmd) error {
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the Pub/Sub emulator: %w", err)
	}
	return nil
}
