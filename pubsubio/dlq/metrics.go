package dlq

import (
	"context"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

// namespace is that of the Beam metrics of the queue over Pub/Sub, which the package
// comment describes.
const namespace = "pubsubio.dlq"

var (
	deadLettersPublished = beam.NewCounter(namespace, "deadLettersPublished")
	outstanding          = beam.NewGauge(namespace, "outstandingDeadLetters")
	flushMillis          = beam.NewDistribution(namespace, "deadLetterFlushMillis")
	longestFlushMillis   = beam.NewGauge(namespace, "longestDeadLetterFlushMillis")
)

// report counts a wait that has ended. What a bundle that fails has published is not
// counted: its letters come again.
func (w *writer) report(ctx context.Context, took time.Duration, err error) {
	w.stats.Flushes.Add(took)
	for _, d := range w.stats.Flushes.Take() {
		flushMillis.Update(ctx, d.Milliseconds())
	}
	_, _, longest := w.stats.Flushes.Load()
	longestFlushMillis.Set(ctx, longest.Milliseconds())
	outstanding.Set(ctx, w.stats.Outstanding())
	if err == nil {
		w.stats.Published.Add(w.letters)
		deadLettersPublished.Inc(ctx, w.letters)
	}
}
