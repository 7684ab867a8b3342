package message_test

import (
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func ExampleParseTopic() {
	_, err := message.ParseTopic("projects/shop/topics/1st")
	fmt.Println(err)
	name, _ := message.ParseTopic("projects/shop/topics/orders")
	fmt.Println(name.Project, name.ID)
	// Output:
	// topic "projects/shop/topics/1st": the id must start with a letter
	// shop orders
}

func ExampleTopicIn() {
	own, _ := message.TopicIn("shop", "orders")
	other, _ := message.TopicIn("shop", "projects/example.com:billing/topics/invoices")
	fmt.Println(own)
	fmt.Println(other)
	// Output:
	// projects/shop/topics/orders
	// projects/example.com:billing/topics/invoices
}
