package pubsubio_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// Functions are known to the workers by name: they are registered in init.
func init() {
	register.Function1x1(shout)
}

func shout(line string) string { return strings.ToUpper(line) }

// A pipeline reads a subscription, changes each record, and publishes the
// result. A server in the process stands in for Pub/Sub; against the service,
// leave EmulatorEndpoint out, and Limit where the pipeline is to go on for ever.
func Example() {
	srv, err := pubsubtest.Start(pubsubtest.Config{KeepPublished: pubsubtest.Unlimited})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.MustCreateTopic("projects/p/topics/lines")
	srv.MustCreateTopic("projects/p/topics/loud")
	srv.MustCreateSubscription("projects/p/subscriptions/lines", "projects/p/topics/lines")
	for _, line := range []string{"one", "two", "three"} {
		if _, err := srv.Publish("projects/p/topics/lines", &pubsubio.Message{Data: []byte(line)}); err != nil {
			fmt.Println(err)
			return
		}
	}

	beam.Init()
	p, s := beam.NewPipelineWithRoot()
	lines := source.Read(s, source.Config{
		Subscriptions:    source.From("projects/p/subscriptions/lines"),
		EmulatorEndpoint: srv.Endpoint(),
		Limit:            options.Limit{MaxMessages: 3},
	}, source.String)
	loud := beam.ParDo(s, shout, lines)
	sink.Write(s, sink.Config{
		Topic:            "projects/p/topics/loud",
		EmulatorEndpoint: srv.Endpoint(),
	}, sink.String, loud)
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
		return
	}

	var published []string
	for _, m := range srv.Messages("projects/p/topics/loud") {
		published = append(published, string(m.Data))
	}
	slices.Sort(published) // Pub/Sub keeps no order.
	fmt.Println(published)
	fmt.Println(srv.Stats("projects/p/subscriptions/lines").Acknowledged, "acknowledged")
	// Output:
	// [ONE THREE TWO]
	// 3 acknowledged
}
