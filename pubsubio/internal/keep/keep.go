// Package keep gives a transform the output that it always has.
//
// Prism spins a core while a bundle is open of a stage that has no output, and it
// fuses a consumer into the stage, or removes a Reshuffle that nothing reads. So a
// read and a write each have an output on which nothing, or only what failed, is
// emitted, behind a Reshuffle, with a consumer (docs/decisions/0008).
package keep

import (
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

func init() { register.Function1x0(discard) }

// Output adds to s what makes col, of elements of any type but pairs, an output of
// the stage that col's DoFn runs in. Whoever else consumes col still does.
func Output(s beam.Scope, col beam.PCollection) error {
	shuffled, err := beam.TryReshuffle(s, col)
	if err != nil {
		return fmt.Errorf("keep an output: %w", err)
	}
	if _, err := beam.TryParDo(s, discard, shuffled); err != nil {
		return fmt.Errorf("keep an output: %w", err)
	}
	return nil
}

func discard(beam.X) {}
