package shop_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/passert"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

const (
	lines   = "projects/p/topics/lines"
	loud    = "projects/p/topics/loud"
	reading = "projects/p/subscriptions/lines"
)

func TestShout_PublishesEveryLineAndAcknowledgesIt(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(lines)
	srv.MustCreateTopic(loud)
	srv.MustCreateSubscription(reading, lines)
	srv.PublishData(t, lines, "one", "two", "three")

	p, s := beam.NewPipelineWithRoot()
	shoutLines(s, srv.Endpoint())
	err := pubsubtest.RunUntil(t,
		func(ctx context.Context) error { return pubsubio.Run(ctx, p) },
		func(ctx context.Context) error { return srv.AwaitPublished(ctx, loud, 3) })

	if !errors.Is(err, pubsubio.ErrStopped) {
		t.Errorf("the pipeline ended with %v", err)
	}
	srv.WantPublished(t, loud, "ONE", "TWO", "THREE")
	srv.WantAcknowledged(t, reading, 3)
}

// The pipeline that is tested. The endpoint is empty in production.
func shoutLines(s beam.Scope, endpoint string) {
	in := source.Read(s, source.Config{Subscriptions: source.From(reading), EmulatorEndpoint: endpoint}, source.String)
	sink.Write(s, sink.Config{Topic: loud, EmulatorEndpoint: endpoint}, sink.String, shouted(s, in))
}

func shouted(s beam.Scope, in beam.PCollection) beam.PCollection { return beam.ParDo(s, shout, in) }

func shout(line string) string { return strings.ToUpper(line) }

func init() { register.Function1x1(shout) }

// What lies between is tested as with any other pipeline of Beam's, without a server.
func TestShouted(t *testing.T) {
	p, s, in := ptest.CreateList([]string{"one", "two"})
	passert.EqualsList(s, shouted(s, in), []string{"ONE", "TWO"})
	ptest.RunAndValidate(t, p)
}

func TestMain(m *testing.M) { ptest.Main(m) }
