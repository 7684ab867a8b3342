package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// binDir has the programs, and a go that knows how to run them. TestMain removes it.
var binDir string

// goScript stands in for go run, which would build the program again for each command.
const goScript = `#!/bin/sh
[ "$1" = run ] || { echo "go $1: the tests of the pages execute go run only" >&2; exit 97; }
program=$(dirname "$0")/$(basename "$2")
shift 2
exec "$program" "$@"
`

var builtPrograms = sync.OnceValue(func() error {
	var err error
	if binDir, err = os.MkdirTemp("", "commands"); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binDir+"/", "./pipelines/...", "./integration/bench", "./pubsubio/pubsubtest/pubsubtestd")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return os.WriteFile(filepath.Join(binDir, "go"), []byte(goScript), 0o700) //nolint:gosec // a program
})

func TestMain(m *testing.M) {
	code := m.Run()
	if binDir != "" {
		_ = os.RemoveAll(binDir)
	}
	os.Exit(code)
}
