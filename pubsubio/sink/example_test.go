package sink_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func init() { sink.RegisterEncoder(encodeOrder) }

// encodeOrder publishes paid orders, with the customer as an attribute.
func encodeOrder(line string) (*message.Message, error) {
	var customer, state string
	if _, err := fmt.Sscan(line, &customer, &state); err != nil {
		return nil, err
	}
	if state != "paid" {
		return nil, nil
	}
	return &message.Message{Data: []byte(line), Attributes: map[string]string{"customer": customer}}, nil
}

func ExampleWrite() {
	srv, err := pubsubtest.Start(pubsubtest.Config{KeepPublished: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.MustCreateTopic("projects/shop/topics/paid")

	p, s := beam.NewPipelineWithRoot()
	orders := beam.Create(s, "ada paid", "bob open", "eve paid")
	sink.Write(s, sink.Config{
		Topic:            "projects/shop/topics/paid",
		EmulatorEndpoint: srv.Endpoint(),
	}, encodeOrder, orders)
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
	}

	var customers []string
	for _, m := range srv.Messages("projects/shop/topics/paid") {
		customers = append(customers, m.Attributes["customer"])
	}
	slices.Sort(customers)
	fmt.Println(customers)
	// Output: [ada eve]
}

func ExampleTryWrite() {
	_, s := beam.NewPipelineWithRoot()
	_, err := sink.TryWrite(s, sink.Config{Topic: "paid", EmulatorEndpoint: "localhost"}, sink.String, beam.Create(s, "x"))
	fmt.Println(err)
	// Output:
	// sink.Write: sink.Config.Topic: topic "paid": must have the form projects/<project>/topics/<id>
	// sink.Config.EmulatorEndpoint: "localhost": must be host:port
}
