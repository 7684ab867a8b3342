package program

import (
	"fmt"
	"io"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

// Exit codes of every program. 130 is what a shell reports of a program that Ctrl-C
// has ended.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitInterrupted = 130
)

// InitBeam is beam.Init, which may be called once per process. In a worker it never
// returns. Call it before any flag is judged: a worker is started with Beam's flags
// only; and before signals are asked for, so that a worker keeps its own reaction.
var InitBeam = sync.OnceFunc(beam.Init)

// Misused tells err, what is wrong with the flags, and where to read about them. It
// returns the exit code.
func Misused(stderr io.Writer, name string, err error) int {
	fmt.Fprintf(stderr, "%v\n%s --help lists the flags.\n", err, name)
	return ExitUsage
}

// Failed tells err, why the program of that name has failed, on the console of a Frame in
// the words of its flags: the packages below name their own fields. It returns the exit
// code.
func Failed(stderr io.Writer, name string, err error) int {
	text := Cause(err)
	if c, ok := stderr.(*Console); ok && c.say != nil {
		text = c.say(text)
	}
	return failed(stderr, name, text)
}

func failed(stderr io.Writer, name, text string) int {
	fmt.Fprintf(stderr, "%s failed: %s\n", name, text)
	return ExitFailed
}
