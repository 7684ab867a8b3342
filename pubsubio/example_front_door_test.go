package pubsubio_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func init() { register.Function1x1(shoutData) }

func shoutData(line []byte) []byte { return bytes.ToUpper(line) }

// Read and Write have the signatures of Beam's own pubsubio; as methods of a Service they
// talk to an emulator, here the server of package pubsubtest. Such a read never ends by
// itself: the context does, and Run then returns once what was published is acknowledged.
func ExampleService() {
	srv, err := pubsubtest.Start(pubsubtest.Config{KeepPublished: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.MustCreateTopic("projects/shop/topics/lines")
	srv.MustCreateTopic("projects/shop/topics/loud")
	srv.MustCreateSubscription("projects/shop/subscriptions/lines", "projects/shop/topics/lines")
	if _, err := srv.Publish("projects/shop/topics/lines", pubsubio.NewMessage([]byte("one")), pubsubio.NewMessage([]byte("two"))); err != nil {
		fmt.Println(err)
		return
	}

	p, s := beam.NewPipelineWithRoot()
	emulated := pubsubio.Service{EmulatorEndpoint: srv.Endpoint()}
	lines := emulated.Read(s, "shop", pubsubio.ReadOptions{Subscription: "lines"})
	emulated.Write(s, "shop", "loud", beam.ParDo(s, shoutData, lines))

	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_ = srv.AwaitPublished(ctx, "projects/shop/topics/loud", 2)
	}()
	counts, err := pubsubio.RunAndReport(ctx, p)
	fmt.Println("stopped cleanly:", errors.Is(err, pubsubio.ErrStopped))
	fmt.Println(counts.Published, "published,", counts.Acknowledged, "acknowledged")
	var published []string
	for _, m := range srv.Messages("projects/shop/topics/loud") {
		published = append(published, string(m.Data))
	}
	slices.Sort(published) // Pub/Sub keeps no order.
	fmt.Println(published)
	// Output:
	// stopped cleanly: true
	// 2 published, 2 acknowledged
	// [ONE TWO]
}
