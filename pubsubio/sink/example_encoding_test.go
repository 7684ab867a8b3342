package sink_test

import (
	"context"
	"fmt"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

// A Payment is what the examples encode.
type Payment struct {
	ID       string `json:"id"`
	Cents    int    `json:"cents"`
	Customer string `json:"-"`
	Country  string `json:"-"`
}

func init() {
	beam.RegisterType(reflect.TypeFor[Payment]()) // As for any struct in a collection of Beam's.
	sink.RegisterEncoder(sink.JSON[Payment])
	sink.RegisterEncoder(sink.Proto[*wrapperspb.StringValue])
	sink.RegisterEncoder(encodePayment)
}

// published runs a pipeline that writes to a topic, and prints what has arrived there.
func published(write func(s beam.Scope, cfg sink.Config)) {
	const topic = "projects/shop/topics/payments"
	srv, err := pubsubtest.Start(pubsubtest.Config{KeepPublished: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.MustCreateTopic(topic)
	p, s := beam.NewPipelineWithRoot()
	write(s, sink.Config{Topic: topic, EmulatorEndpoint: srv.Endpoint()})
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
	}
	for _, m := range srv.Messages(topic) {
		fmt.Printf("data %q, attributes %v, key %q\n", m.Data, m.Attributes, m.OrderingKey)
	}
}

// JSON needs no encoder of one's own.
func ExampleJSON() {
	published(func(s beam.Scope, cfg sink.Config) {
		sink.Write(s, cfg, sink.JSON[Payment], beam.Create(s, Payment{ID: "a", Cents: 250}))
	})
	// Output:
	// data "{\"id\":\"a\",\"cents\":250}", attributes map[], key ""
}

// Nor do protocol buffers.
func ExampleProto() {
	published(func(s beam.Scope, cfg sink.Config) {
		sink.Write(s, cfg, sink.Proto[*wrapperspb.StringValue], beam.Create(s, wrapperspb.String("tea")))
	})
	// Output:
	// data "\n\x03tea", attributes map[], key ""
}

// Attributes and an ordering key come from the record; what it does not have adds
// nothing.
var paymentEncoder = sink.WithOrderingKey(
	sink.WithAttributes(sink.JSON[Payment], func(p Payment) map[string]string {
		return map[string]string{"country": p.Country}
	}),
	func(p Payment) string { return p.Customer },
)

// encodePayment has the name by which workers find the encoder.
func encodePayment(p Payment) (*message.Message, error) { return paymentEncoder(p) }

func ExampleWithAttributes() {
	published(func(s beam.Scope, cfg sink.Config) {
		cfg.Publisher = options.Publisher{EnableMessageOrdering: true}
		sink.Write(s, cfg, encodePayment, beam.Create(s, Payment{ID: "a", Customer: "ada", Country: "pt"}))
	})
	published(func(s beam.Scope, cfg sink.Config) {
		sink.Write(s, cfg, encodePayment, beam.Create(s, Payment{ID: "b"}))
	})
	// Output:
	// data "{\"id\":\"a\",\"cents\":0}", attributes map[country:pt], key "ada"
	// data "{\"id\":\"b\",\"cents\":0}", attributes map[], key ""
}

// String publishes text as it is, and Bytes any bytes.
func ExampleString() {
	published(func(s beam.Scope, cfg sink.Config) {
		sink.Write(s, cfg, sink.String, beam.Create(s, "tea"))
	})
	// Output:
	// data "tea", attributes map[], key ""
}
