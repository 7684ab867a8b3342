package source

import (
	"context"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/grpc/codes"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// metricsNamespace is that of the source's Beam metrics, which the package comment
// describes.
const metricsNamespace = "pubsubio.source"

// counters are Beam's counters and the counts that they follow.
var counters = []struct {
	counter beam.Counter
	of      func(*stats.Source) *stats.Count
}{
	{counter("messagesReceived"), func(s *stats.Source) *stats.Count { return &s.Received }},
	{counter("messagesAcked"), func(s *stats.Source) *stats.Count { return &s.Acknowledged }},
	{counter("messagesNacked"), func(s *stats.Source) *stats.Count { return &s.Returned }},
	{counter("messagesLapsed"), func(s *stats.Source) *stats.Count { return &s.Lapsed }},
	{counter("emittedMessagesLapsed"), func(s *stats.Source) *stats.Count { return &s.LapsedEmitted }},
	{counter("messagesUnacknowledged"), func(s *stats.Source) *stats.Count { return &s.Unacknowledged }},
	{counter("duplicatesSuppressed"), func(s *stats.Source) *stats.Count { return &s.Redelivered }},
	{counter("decodeFailures"), func(s *stats.Source) *stats.Count { return &s.DecodeFailures }},
	{counter("messagesDropped"), func(s *stats.Source) *stats.Count { return &s.Dropped }},
	{counter("messagesNackedByPolicy"), func(s *stats.Source) *stats.Count { return &s.Nacked }},
	{counter("messagesLeft"), func(s *stats.Source) *stats.Count { return &s.Left }},
	{counter("deadLetters"), func(s *stats.Source) *stats.Count { return &s.DeadLetters }},
	{counter("timestampsInSeconds"), func(s *stats.Source) *stats.Count { return &s.TimestampsInSeconds }},
	{counter("copiesSuppressed"), func(s *stats.Source) *stats.Count { return &s.Copies }},
	{counter("committedByFinalization"), func(s *stats.Source) *stats.Count { return &s.ByFinalization }},
	{counter("committedByResume"), func(s *stats.Source) *stats.Count { return &s.ByResume }},
	{counter("committedByPipeline"), func(s *stats.Source) *stats.Count { return &s.ByPipeline }},
	{counter("streamsReopened"), func(s *stats.Source) *stats.Count { return &s.StreamsReopened }},
	{counter("splitsParked"), func(s *stats.Source) *stats.Count { return &s.SplitsParked }},
	{counter("subscriberShutdownsAbandoned"), func(s *stats.Source) *stats.Count { return &s.ShutdownsAbandoned }},
}

func counter(name string) beam.Counter { return beam.NewCounter(metricsNamespace, name) }

var (
	messagesEmitted  = counter("messagesEmitted")
	pendingAcks      = beam.NewGauge(metricsNamespace, "pendingAcks")
	bufferedMessages = beam.NewGauge(metricsNamespace, "bufferedMessages")
	bufferedBytes    = beam.NewGauge(metricsNamespace, "bufferedBytes")
	openStreams      = beam.NewGauge(metricsNamespace, "openStreams")
	parkedSplits     = beam.NewGauge(metricsNamespace, "parkedSplits")
	commitMillis     = beam.NewDistribution(metricsNamespace, "commitMillis")
)

func countEmitted(ctx context.Context, n int) { messagesEmitted.Inc(ctx, int64(n)) }

// reportMetrics moves Beam's metrics to what has happened since the last bundle, to
// any reader of the Read. Counters can be moved within a bundle only, so what
// happens between bundles is reported by the next one. A restriction ends only
// after everything is settled, so nothing is missing at the end but how the last
// readers closed; on the direct runner, where what was read is acknowledged after
// the last bundle, the acknowledgements are.
func reportMetrics(ctx context.Context, s *stats.Source, readers ...*reader) {
	for i := range counters {
		if n := counters[i].of(s).Take(); n > 0 {
			counters[i].counter.Inc(ctx, n)
		}
	}
	for code := range s.Errors {
		if n := s.Errors[code].Take(); n > 0 {
			counter("errorClass."+transport.CodeName(codes.Code(code))+".errors").Inc(ctx, n)
		}
	}
	for _, d := range s.Commits.Take() {
		commitMillis.Update(ctx, d.Milliseconds())
	}
	for _, r := range readers {
		r.reportOwed()
	}
	pendingAcks.Set(ctx, s.PendingAcks.Load())
	bufferedMessages.Set(ctx, s.Buffered.Load())
	bufferedBytes.Set(ctx, s.BufferedBytes.Load())
	openStreams.Set(ctx, s.OpenStreams.Load())
	parkedSplits.Set(ctx, s.ParkedSplits.Load())
}

// reportOwed brings the reader's part of the pending acknowledgements up to date.
func (r *reader) reportOwed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.reportOwedLocked(r.owedLocked())
	}
}

func (r *reader) reportOwedLocked(owed int) {
	r.counts.PendingAcks.Add(int64(owed - r.reported))
	r.reported = owed
}

// timeCommit counts how long the commit of an attempt has taken since its bundle
// had ended, where that is known.
func (r *reader) timeCommit(a *attempt) {
	if !a.ended.IsZero() {
		r.counts.Commits.Add(time.Since(a.ended))
	}
}
