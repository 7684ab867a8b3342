package iam_test

import (
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
)

func Example() {
	fmt.Println(iam.Publish.Permission, iam.Publish.Role)
	// Output: pubsub.topics.publish roles/pubsub.publisher
}
