package pubsubio

import (
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/grpc/codes"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// Counts are what the reads and writes of a pipeline have done in this process.
// On a runner whose workers are other processes they stay zero, and Beam's
// metrics, in the namespaces pubsubio.source and pubsubio.sink, tell.
type Counts struct {
	// Received is how many messages have come, copies included, and Read how many
	// were decoded and emitted. One whose bundle failed counts again when it has come
	// again.
	Received, Read int64
	// Acknowledged is how many acknowledgements the service has answered.
	Acknowledged int64
	// Returned is how many messages were handed back unacknowledged: those of
	// failed bundles, and what was received and not emitted when a read ended.
	Returned int64
	// Redelivered is how many messages came again while they were still held,
	// and were not emitted twice.
	Redelivered int64
	// Lapsed is how many received messages were dropped, not emitted, as their lease
	// had ended; Unacknowledged how many were committed and could not be acknowledged.
	// All of these come again.
	Lapsed, Unacknowledged int64
	// CommittedByFinalization, CommittedByResume and CommittedByPipeline are how many
	// messages each signal has committed, after which they are acknowledged.
	CommittedByFinalization, CommittedByResume, CommittedByPipeline int64
	// Commits is how many bundles with messages have committed of which it is known
	// how long that took from their end on: CommitTime in all, LongestCommit at most.
	Commits                   int64
	CommitTime, LongestCommit time.Duration
	// StreamsReopened is how many streams had worked, ended and were opened again.
	StreamsReopened int64
	// SplitsParked is how often a split was parked because the runner did not come
	// back for it, and ShutdownsAbandoned how many readers did not close in time.
	SplitsParked, ShutdownsAbandoned int64
	// ReadErrors is how many calls and openings of streams of the reads have failed,
	// by the name of their status, as UNAVAILABLE. Nil where none has.
	ReadErrors map[string]int64
	// Of the moment: PendingAcks is how many messages were emitted and wait for their
	// commit or for the answer to their acknowledgement, as of the latest bundles;
	// Buffered how many wait to be emitted, of BufferedBytes in all; OpenStreams how
	// many streams are open, and ParkedSplits how many splits are parked.
	PendingAcks, Buffered, BufferedBytes, OpenStreams, ParkedSplits int64
	// DecodeFailures is how many messages were refused by the decoder, or for their
	// event time. Of those, MessagesDropped is how many the policy dropped,
	// MessagesNackedByPolicy how many it returned, MessagesLeft how many it left for
	// others, and MessagesDeadLettered how many a dead-letter queue was handed. A message
	// that comes again counts again.
	DecodeFailures, MessagesDropped, MessagesNackedByPolicy, MessagesLeft, MessagesDeadLettered int64
	// TimestampsInSeconds is how many event times were numbers that look like
	// seconds where milliseconds are expected.
	TimestampsInSeconds int64
	// Published is how many records the service has taken, and PublishedBytes
	// their serialized size. A record that was sent several times counts once.
	Published, PublishedBytes int64
	// Skipped is how many records the encoder has skipped.
	Skipped int64
	// Failed is how many records could not be published. Of those, Dropped is how
	// many a failure policy has dropped, and DeadLetters how many a dead-letter
	// queue was handed.
	Failed, Dropped, DeadLetters int64
	// DeadLettersPublished is how many letters the dead-letter queues over Pub/Sub have
	// made durable, OutstandingDeadLetters how many messages of theirs have no answer
	// now, and LongestDeadLetterFlush the longest wait for letters.
	DeadLettersPublished, OutstandingDeadLetters int64
	LongestDeadLetterFlush                       time.Duration
	// SendErrors is how many attempts at publish requests, or at creating their
	// topics, have failed: once for each bundle with messages in the request.
	SendErrors int64
	// TopicsCreated is how many topics were created.
	TopicsCreated int64
	// InFlight is how many messages the writes hold now that the service has not
	// answered, and Parked how many of those wait for a missing topic.
	InFlight, Parked int64
	// PublishersAbandoned is how many publishers were not released in time.
	PublishersAbandoned int64
}

// CountsOf returns the counts of p's reads and writes. It may be called at any
// time, also while p runs.
func CountsOf(p *beam.Pipeline) Counts {
	var c Counts
	seen := make(map[string]bool)
	for _, fn := range doFns(p) {
		named, ok := fn.(interface{ StatsNonce() string })
		if !ok || seen[named.StatsNonce()] {
			continue
		}
		nonce := named.StatsNonce()
		seen[nonce] = true
		c.addQueue(stats.ForQueue(nonce))
		if source.Owns(fn) {
			c.addSource(stats.ForSource(nonce))
		} else {
			s := stats.ForSink(nonce)
			c.Published += s.Published.Load()
			c.PublishedBytes += s.Bytes.Load()
			c.Skipped += s.Skipped.Load()
			c.Failed += s.Failed.Load()
			c.Dropped += s.Dropped.Load()
			c.DeadLetters += s.DeadLetters.Load()
			c.SendErrors += s.Errors.Load()
			c.TopicsCreated += s.TopicsCreated.Load()
			c.InFlight += s.InFlight.Load()
			c.Parked += s.Parked.Load()
			c.PublishersAbandoned += s.ShutdownsAbandoned.Load()
		}
	}
	return c
}

func (c *Counts) addQueue(s *stats.Queue) {
	c.DeadLettersPublished += s.Published.Load()
	c.OutstandingDeadLetters += s.Outstanding()
	_, _, longest := s.Flushes.Load()
	c.LongestDeadLetterFlush = max(c.LongestDeadLetterFlush, longest)
}

func (c *Counts) addSource(s *stats.Source) {
	c.Received += s.Received.Load()
	c.Read += s.Emitted.Load()
	c.Acknowledged += s.Acknowledged.Load()
	c.Returned += s.Returned.Load()
	c.Redelivered += s.Redelivered.Load()
	c.DecodeFailures += s.DecodeFailures.Load()
	c.MessagesDropped += s.Dropped.Load()
	c.MessagesNackedByPolicy += s.Nacked.Load()
	c.MessagesLeft += s.Left.Load()
	c.MessagesDeadLettered += s.DeadLetters.Load()
	c.TimestampsInSeconds += s.TimestampsInSeconds.Load()
	c.Lapsed += s.Lapsed.Load()
	c.Unacknowledged += s.Unacknowledged.Load()
	c.CommittedByFinalization += s.ByFinalization.Load()
	c.CommittedByResume += s.ByResume.Load()
	c.CommittedByPipeline += s.ByPipeline.Load()
	commits, total, longest := s.Commits.Load()
	c.Commits += commits
	c.CommitTime += total
	c.LongestCommit = max(c.LongestCommit, longest)
	c.StreamsReopened += s.StreamsReopened.Load()
	c.SplitsParked += s.SplitsParked.Load()
	c.ShutdownsAbandoned += s.ShutdownsAbandoned.Load()
	for code := range s.Errors {
		if n := s.Errors[code].Load(); n > 0 {
			if c.ReadErrors == nil {
				c.ReadErrors = make(map[string]int64)
			}
			c.ReadErrors[transport.CodeName(codes.Code(code))] += n
		}
	}
	c.PendingAcks += s.PendingAcks.Load()
	c.Buffered += s.Buffered.Load()
	c.BufferedBytes += s.BufferedBytes.Load()
	c.OpenStreams += s.OpenStreams.Load()
	c.ParkedSplits += s.ParkedSplits.Load()
}

// doFns returns the DoFns of p, as they will be sent to the workers.
func doFns(p *beam.Pipeline) []any {
	edges, _, err := p.Build()
	if err != nil {
		return nil // Running p says why.
	}
	var fns []any
	for _, e := range edges {
		if e.DoFn != nil && e.DoFn.Recv != nil {
			fns = append(fns, e.DoFn.Recv)
		}
	}
	return fns
}
