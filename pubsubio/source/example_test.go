package source_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// What a worker needs is registered in init: it never reaches main.
func init() {
	source.RegisterDecoder(words)
	register.Function1x0(printWord)
}

// words decodes a message into any number of records.
func words(m *message.Message, emit func(string)) error {
	for word := range strings.FieldsSeq(string(m.Data)) {
		emit(word)
	}
	return nil
}

func printWord(word string) { fmt.Println(word) }

func ExampleRead() {
	slog.SetLogLoggerLevel(slog.LevelError)
	server, err := pubsubtest.Start(pubsubtest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.MustCreateTopic("projects/shop/topics/orders")
	server.MustCreateSubscription("projects/shop/subscriptions/orders", "projects/shop/topics/orders")
	_, err = server.Publish("projects/shop/topics/orders",
		&message.Message{Data: []byte("tea milk")}, &message.Message{Data: []byte("bread")})
	if err != nil {
		fmt.Println(err)
		return
	}

	p, s := beam.NewPipelineWithRoot()
	orders := source.Read(s, source.Config{
		Subscriptions:    source.From("projects/shop/subscriptions/orders"),
		EmulatorEndpoint: server.Endpoint(),
		Limit:            options.Limit{MaxMessages: 2},
	}, words)
	beam.ParDo0(s, printWord, orders)
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("acknowledged:", server.Stats("projects/shop/subscriptions/orders").Acknowledged)
	// Unordered output:
	// tea
	// milk
	// bread
	// acknowledged: 2
}

// A pipeline that reads a topic has a subscription of its own. The pipeline creates it
// when it starts, and pubsubio.Run deletes it when a local run has ended.
func ExampleFromTopic() {
	cfg := source.Config{Subscriptions: source.FromTopic("shop", "projects/example.com:billing/topics/invoices")}
	own := cfg.Subscriptions[0]
	fmt.Println(strings.HasPrefix(own.Name, "projects/shop/subscriptions/beam-invoices-"))
	fmt.Println(own.Create.Topic, own.Create.ExpirationTTL)
	fmt.Println(cfg.Validate())
	// Output:
	// true
	// projects/example.com:billing/topics/invoices 192h0m0s
	// <nil>
}
