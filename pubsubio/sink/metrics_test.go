package sink

import (
	"context"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"google.golang.org/grpc/codes"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
)

func init() { register.Function2x0(reportAll) }

// reportAll reports what no pool could have counted all at once.
func reportAll(ctx context.Context, _ string) {
	reportCounts(ctx, publish.Counts{
		DestinationCounts: publish.DestinationCounts{Published: 1, Bytes: 2, Errors: 3},
		TopicsCreated:     4, ShutdownsAbandoned: 5,
		ErrorsByCode: map[codes.Code]int64{codes.Unavailable: 6, codes.Canceled: 7, 99: 8},
		Destinations: map[string]publish.DestinationCounts{topic: {Published: 9, Bytes: 10, Errors: 11}},
	})
	reportLoad(ctx, publish.Load{Messages: 12, Bytes: 13, Parked: 14})
}

func TestMetrics_AreReportedUnderTheirNames(t *testing.T) {
	result, _, err := onPrism(t.Context(), func(s beam.Scope) { beam.ParDo0(s, reportAll, beam.Create(s, t.Name())) })
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{
		"recordsSend": 1, "bytesSend": 2, "sendErrors": 3, "topicsCreated": 4, "publisherShutdownsAbandoned": 5,
		"errorClass.UNAVAILABLE.errors": 6, "errorClass.CANCELLED.errors": 7, "errorClass.UNKNOWN.errors": 8,
		"destination." + topic + ".recordsSend": 9, "destination." + topic + ".bytesSend": 10, "destination." + topic + ".sendErrors": 11,
	} {
		if got := counter(result, name); got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]int64{"inFlightMessages": 12, "inFlightBytes": 13, "parkedMessages": 14} {
		var got int64
		for _, g := range result.Metrics().Query(func(m beam.MetricResult) bool { return m.Name() == name }).Gauges() {
			got = g.Result().Value
		}
		if got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
}
