package source_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// An Order is what the examples decode.
type Order struct {
	ID     string    `json:"id"`
	Cents  int       `json:"cents"`
	Placed time.Time `json:"placed"`
}

func init() {
	source.RegisterDecoder(source.JSON[Order])
	source.RegisterDecoder(source.Proto[*wrapperspb.StringValue])
	source.RegisterDecoder(placedOrder)
	register.Function1x0(printOrder)
	register.Function1x0(printName)
	register.Function1x0(printFailed)
	register.Function2x0(printTimed)
}

func printOrder(o Order) { fmt.Println("order", o.ID, "of", o.Cents, "cents") }

func printName(name *wrapperspb.StringValue) { fmt.Println("name", name.GetValue()) }

func printFailed(f source.Failed) {
	fmt.Printf("refused %s of message %s: %s\n", f.Message.Data, f.Message.ID, f.Error)
}

func printTimed(at beam.EventTime, o Order) {
	fmt.Println("order", o.ID, "at", at.ToTime().Format(time.RFC3339))
}

// placedOrder has an order come at the time at which it was placed.
func placedOrder(m *message.Message, emit func(source.Timed[Order])) error {
	var o Order
	if err := json.Unmarshal(m.Data, &o); err != nil {
		return errors.New("the order is no JSON")
	}
	emit(source.At(o.Placed, o))
	return nil
}

// shop starts a server with those messages in a subscription, and returns what reads
// them all.
func shop(payloads ...[]byte) (*pubsubtest.Server, source.Config) {
	slog.SetLogLoggerLevel(slog.LevelError)
	server, err := pubsubtest.Start(pubsubtest.Config{})
	if err != nil {
		panic(err)
	}
	server.MustCreateTopic("projects/shop/topics/orders")
	server.MustCreateSubscription("projects/shop/subscriptions/orders", "projects/shop/topics/orders")
	for _, payload := range payloads {
		if _, err := server.Publish("projects/shop/topics/orders", message.New(payload)); err != nil {
			panic(err)
		}
	}
	return server, source.Config{
		Subscriptions:    source.From("projects/shop/subscriptions/orders"),
		EmulatorEndpoint: server.Endpoint(),
		Limit:            options.Limit{MaxMessages: int64(len(payloads))},
	}
}

// JSON needs no decoder of one's own.
func ExampleJSON() {
	server, cfg := shop([]byte(`{"id":"a","cents":250}`))
	defer server.Close()

	p, s := beam.NewPipelineWithRoot()
	orders := source.Read(s, cfg, source.JSON[Order])
	beam.ParDo0(s, printOrder, orders)
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
	}
	// Output:
	// order a of 250 cents
}

// Nor do protocol buffers.
func ExampleProto() {
	payload, err := proto.Marshal(wrapperspb.String("tea"))
	if err != nil {
		fmt.Println(err)
		return
	}
	server, cfg := shop(payload)
	defer server.Close()

	p, s := beam.NewPipelineWithRoot()
	names := source.Read(s, cfg, source.Proto[*wrapperspb.StringValue])
	beam.ParDo0(s, printName, names)
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
	}
	// Output:
	// name tea
}

// What cannot be decoded is emitted, and the rest of the pipeline decides.
func ExampleReadWithFailures() {
	server, cfg := shop([]byte(`{"id":"a","cents":250}`), []byte(`{"id":"b","cents":"many"}`))
	defer server.Close()
	cfg.OnDecodeFailure = source.EmitFailed()

	p, s := beam.NewPipelineWithRoot()
	orders, failed := source.ReadWithFailures(s, cfg, source.JSON[Order])
	beam.ParDo0(s, printOrder, orders)
	beam.ParDo0(s, printFailed, failed)
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// order a of 250 cents
	// refused {"id":"b","cents":"many"} of message 2: decode message 2 of projects/shop/subscriptions/orders: JSON: a string does not fit the Go type int of field cents, at byte 24
}

// The payload says when it happened.
func ExampleTimed() {
	server, cfg := shop([]byte(`{"id":"a","placed":"2024-05-06T07:08:09Z"}`))
	defer server.Close()

	p, s := beam.NewPipelineWithRoot()
	orders := source.Read(s, cfg, placedOrder)
	beam.ParDo0(s, printTimed, orders)
	if err := pubsubio.Run(context.Background(), p); err != nil {
		fmt.Println(err)
	}
	// Output:
	// order a at 2024-05-06T07:08:09Z
}
