package source

import (
	"context"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"google.golang.org/grpc/codes"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

func init() { register.Function2x0(reportAll) }

// reportAll reports what no read could have counted all at once, and again, which
// adds nothing.
func reportAll(ctx context.Context, _ string) {
	s := new(stats.Source)
	for i, c := range []*stats.Count{
		&s.Received, &s.Acknowledged, &s.Returned, &s.Lapsed, &s.Unacknowledged, &s.Redelivered,
		&s.ByFinalization, &s.ByResume, &s.ByPipeline, &s.StreamsReopened, &s.SplitsParked, &s.ShutdownsAbandoned,
		&s.Errors[codes.Unavailable], &s.Errors[codes.Canceled],
		&s.LapsedEmitted, &s.Copies, &s.DecodeFailures, &s.Dropped, &s.Nacked, &s.Left, &s.DeadLetters, &s.TimestampsInSeconds,
	} {
		c.Add(int64(i + 1))
	}
	s.PendingAcks.Store(21)
	s.Buffered.Store(22)
	s.BufferedBytes.Store(23)
	s.OpenStreams.Store(24)
	s.ParkedSplits.Store(25)
	s.Commits.Add(30 * time.Millisecond)
	s.Commits.Add(10 * time.Millisecond)
	reportMetrics(ctx, s)
	reportMetrics(ctx, s)
	countEmitted(ctx, 15)
}

func TestMetrics_AreReportedUnderTheirNames(t *testing.T) {
	p, s := beam.NewPipelineWithRoot()
	beam.ParDo0(s, reportAll, beam.Create(s, t.Name()))
	result, err := prism.Execute(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	all := result.Metrics().Query(func(m beam.MetricResult) bool { return m.Namespace() == metricsNamespace })
	got := make(map[string]int64)
	for _, c := range all.Counters() {
		got[c.Name()] += c.Result()
	}
	for _, g := range all.Gauges() {
		got[g.Name()] = g.Result().Value
	}
	for _, d := range all.Distributions() {
		r := d.Result()
		got[d.Name()] = r.Sum
		if r.Count != 2 || r.Min != 10 || r.Max != 30 {
			t.Errorf("%s is %+v", d.Name(), r)
		}
	}
	want := map[string]int64{
		"messagesReceived": 1, "messagesAcked": 2, "messagesNacked": 3, "messagesLapsed": 4, "messagesUnacknowledged": 5,
		"duplicatesSuppressed": 6, "committedByFinalization": 7, "committedByResume": 8, "committedByPipeline": 9,
		"streamsReopened": 10, "splitsParked": 11, "subscriberShutdownsAbandoned": 12,
		"errorClass.UNAVAILABLE.errors": 13, "errorClass.CANCELLED.errors": 14, "messagesEmitted": 15,
		"pendingAcks": 21, "bufferedMessages": 22, "bufferedBytes": 23, "openStreams": 24, "parkedSplits": 25,
		"commitMillis": 40,
		// The two errors above are the 13th and 14th.
		"emittedMessagesLapsed": 15, "copiesSuppressed": 16, "decodeFailures": 17, "messagesDropped": 18,
		"messagesNackedByPolicy": 19, "messagesLeft": 20, "deadLetters": 21, "timestampsInSeconds": 22,
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s = %d, want %d", name, got[name], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the metrics are %v", got)
	}
}
