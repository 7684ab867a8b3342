package pubsubtest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// A server outside of a test, and what it tells about a client. In a test, New
// starts the server and closes it.
func Example() {
	srv, err := pubsubtest.Start(pubsubtest.Config{Events: pubsubtest.Unlimited})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	const topic, sub = "projects/shop/topics/orders", "projects/shop/subscriptions/orders"
	srv.MustCreateTopic(topic)
	srv.MustCreateSubscription(sub, topic)
	if _, err := srv.Publish(topic, &message.Message{Data: []byte("one book")}); err != nil {
		log.Fatal(err)
	}

	// The code under test, at its shortest: pull and acknowledge.
	conn, err := grpc.NewClient(srv.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := pubsubpb.NewSubscriberClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	resp, err := client.Pull(ctx, &pubsubpb.PullRequest{Subscription: sub, MaxMessages: 1})
	if err != nil {
		log.Fatal(err)
	}
	id := resp.GetReceivedMessages()[0].GetAckId()
	if _, err := client.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: sub, AckIds: []string{id}}); err != nil {
		log.Fatal(err)
	}

	fmt.Println("acknowledged:", srv.Stats(sub).Acknowledged)
	for _, e := range srv.Events() {
		fmt.Printf("%v %s\n", e.Kind, e.Message().Data)
	}
	// Output:
	// acknowledged: 1
	// Publish one book
	// Deliver one book
	// Acknowledge one book
}

// A method that fails twice, then works.
func ExampleServer_Answer() {
	srv, err := pubsubtest.Start(pubsubtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	srv.MustCreateTopic("projects/shop/topics/orders")
	srv.Answer("GetTopic", status.Error(codes.Unavailable, "try again"), pubsubtest.Times(2))

	conn, err := grpc.NewClient(srv.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := pubsubpb.NewPublisherClient(conn)
	for range 3 {
		_, err := client.GetTopic(context.Background(), &pubsubpb.GetTopicRequest{Topic: "projects/shop/topics/orders"})
		fmt.Println(status.Code(err))
	}
	// Output:
	// Unavailable
	// Unavailable
	// OK
}

// publisher connects to a server as the code under test would.
func publisher(srv *pubsubtest.Server) (client pubsubpb.PublisherClient, done func()) {
	conn, err := grpc.NewClient(srv.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return pubsubpb.NewPublisherClient(conn), func() { _ = conn.Close() }
}

// A message that the service refuses, and its request with it.
func ExampleServer_Order() {
	srv, err := pubsubtest.Start(pubsubtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	const topic = "projects/shop/topics/orders"
	srv.MustCreateTopic(topic)
	poison := srv.Order(pubsubtest.Rule{Method: "Publish", Topic: topic, Attribute: "poison"},
		pubsubtest.Fail(status.Error(codes.InvalidArgument, "poison")))

	client, done := publisher(srv)
	defer done()
	good := &pubsubpb.PubsubMessage{Data: []byte("one book")}
	bad := &pubsubpb.PubsubMessage{Data: []byte("two"), Attributes: map[string]string{"poison": "yes"}}
	for _, msgs := range [][]*pubsubpb.PubsubMessage{{good, bad}, {good}} {
		_, err := client.Publish(context.Background(), &pubsubpb.PublishRequest{Topic: topic, Messages: msgs})
		fmt.Println(status.Code(err))
	}
	fmt.Println("refused:", poison.Fired(), "published:", srv.Published(topic))
	// Output:
	// InvalidArgument
	// OK
	// refused: 1 published: 1
}

// A request that is stored while its answer is lost: a client that makes it again
// has published twice.
func ExampleCarryOut() {
	srv, err := pubsubtest.Start(pubsubtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	const topic = "projects/shop/topics/orders"
	srv.MustCreateTopic(topic)
	srv.Order(pubsubtest.Rule{Method: "Publish", Times: 1},
		pubsubtest.CarryOut(), pubsubtest.Fail(status.Error(codes.Unavailable, "lost")))

	client, done := publisher(srv)
	defer done()
	for range 2 {
		_, err := client.Publish(context.Background(), &pubsubpb.PublishRequest{
			Topic: topic, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("one book")}},
		})
		fmt.Println(status.Code(err))
	}
	fmt.Println("published:", srv.Published(topic))
	// Output:
	// Unavailable
	// OK
	// published: 2
}

// A request that is held back while the test looks at what the client has in
// flight.
func ExampleWaitFor() {
	srv, err := pubsubtest.Start(pubsubtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	const topic = "projects/shop/topics/orders"
	srv.MustCreateTopic(topic)
	gate := make(chan struct{})
	held := srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.WaitFor(gate))

	client, done := publisher(srv)
	defer done()
	answered := make(chan error)
	go func() {
		_, err := client.Publish(context.Background(), &pubsubpb.PublishRequest{
			Topic: topic, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("one book")}, {Data: []byte("another")}},
		})
		answered <- err
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := held.AwaitFired(ctx, 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println("in flight:", srv.PublishLoad(topic).Messages)
	close(gate)
	fmt.Println("answered:", status.Code(<-answered))
	fmt.Println("in flight:", srv.PublishLoad(topic).Messages, "at most:", srv.PublishLoad(topic).MaxMessages)
	// Output:
	// in flight: 2
	// answered: OK
	// in flight: 0 at most: 2
}

// A service account that may publish and nothing else.
func ExampleServer_Deny() {
	srv, err := pubsubtest.Start(pubsubtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	srv.MustCreateTopic("projects/shop/topics/orders")
	srv.Deny("GetTopic")
	srv.Deny("CreateTopic")

	client, done := publisher(srv)
	defer done()
	_, err = client.GetTopic(context.Background(), &pubsubpb.GetTopicRequest{Topic: "projects/shop/topics/orders"})
	fmt.Println(status.Convert(err).Message())
	// Output:
	// User not authorized to perform this action. Permission pubsub.topics.get is required.
}
