package sink

import (
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/state"
)

// byKey brings the messages of a topic and an ordering key to one place first, and
// publishes them there. It returns the failures of both steps.
func byKey(s beam.Scope, cfg Config, fn *writeFn, col beam.PCollection) (beam.PCollection, error) {
	col, err := globally(s, col)
	if err != nil {
		return beam.PCollection{}, err
	}
	prepared, err := beam.TryParDo(s, &keyFn{preparation: fn.preparation, publication: fn.publication}, col)
	if err != nil {
		return beam.PCollection{}, err
	}
	published, err := beam.TryParDo(s, &orderedFn{
		publication:       fn.publication,
		SequenceAttribute: cfg.SequenceAttribute,
		Sequence:          state.MakeValueState[int64]("sequence"),
	}, prepared[1])
	if err != nil {
		return beam.PCollection{}, err
	}
	return beam.TryFlatten(s, prepared[0], published[0])
}
