package pubsubio

import "github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"

// A Message is a Pub/Sub message, see package message.
type Message = message.Message
