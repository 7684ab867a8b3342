package main

import (
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func init() {
	sink.RegisterResolver(recordTopic)
}

// recordTopic resolves a record, at no cost.
func recordTopic(r *record, _ time.Time) (string, error) { return r.Topic, nil }

// spread sets where messages go, and how. One topic is a fixed one, as a user
// would have it.
func (j job) spread(out *sink.Config) {
	out.CreateDisposition = options.CreateNever
	out.Publisher.EnableMessageOrdering = j.load.Keys > 0
	if j.load.Topics == 1 {
		out.Topic = j.phase.outputTopic(0)
		return
	}
	out.Resolve = sink.ResolveWith(recordTopic)
}
