package sink

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/seldom"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

// A dropLog tells of the records that a Write drops on this worker, at a decreasing
// rate: a topic that refuses everything must not fill the disk too.
type dropLog struct {
	stats *stats.Sink
	warn  func(ctx context.Context, text string) // nil logs by Beam
}

// dropped counts f, and tells of it if it is f's turn.
func (l *dropLog) dropped(ctx context.Context, f *failure) {
	n := l.stats.Dropped.Add(1)
	if !seldom.Turn(n, &l.stats.DropLogged, time.Now()) {
		return
	}
	text := fmt.Sprintf("sink: dropped a record, %d so far: %s", n, f.Error)
	if l.warn != nil {
		l.warn(ctx, text)
		return
	}
	log.Warn(ctx, text)
}
