package routed_test

import (
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func Example() {
	cfg := sink.Config{Resolve: routed.Resolve()}
	fmt.Println(cfg.Validate())
	m, err := routed.Encode(routed.Message{Topic: "projects/shop/topics/paid", Message: message.New([]byte("order"))})
	fmt.Println(string(m.Data), err)
	// Output:
	// <nil>
	// order <nil>
}
