package check

import (
	"slices"
	"strings"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/loadgen"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/relay"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/replay"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/verify"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/windowcount"
)

// programs are those whose flags check reads. A new one goes here.
var programs = []struct {
	name string
	use  func(args []string) (program.Use, error)
}{
	{"relay", relay.Use},
	{"replay", replay.Use},
	{"loadgen", loadgen.Use},
	{"verify", verify.Use},
	{"windowcount", windowcount.Use},
}

// useOf returns what reads the flags of a program, nil where there is none of that name.
func useOf(name string) func([]string) (program.Use, error) {
	for _, p := range programs {
		if p.name == name {
			return p.use
		}
	}
	return nil
}

// programNames are their names, for texts.
func programNames() string {
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
	}
	last := len(names) - 1
	return strings.Join(slices.Clone(names[:last]), ", ") + " or " + names[last]
}
