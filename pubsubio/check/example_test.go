package check_test

import (
	"context"
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func ExampleRun() {
	srv, err := pubsubtest.Start(pubsubtest.Config{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	srv.MustCreateTopic("projects/shop/topics/orders")
	srv.MustCreateSubscription("projects/shop/subscriptions/orders", "projects/shop/topics/orders")

	report, err := check.Run(context.Background(), check.Configs{
		Sources: []source.Config{{
			Subscriptions:    source.From("projects/shop/subscriptions/orders"),
			Ordering:         options.PerKey,
			EmulatorEndpoint: srv.Endpoint(),
		}},
	}, check.Options{})
	if err != nil {
		panic(err)
	}
	for _, r := range report.Resources {
		fmt.Println(r.Kind, r.Name, r.Says())
		for _, f := range r.Findings {
			fmt.Println("-", f.Text)
			fmt.Println("  $", f.Commands[0])
		}
	}
	// Output:
	// subscription projects/shop/subscriptions/orders exists; pubsub.subscriptions.consume is granted
	// - has no message ordering, which Ordering options.PerKey needs and which cannot be added
	//   $ gcloud pubsub subscriptions create orders-ordered --project=shop --topic=projects/shop/topics/orders --enable-message-ordering
	// topic projects/shop/topics/orders exists
}
