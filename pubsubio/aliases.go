package pubsubio

import (
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A Message is a Pub/Sub message, see package message.
type Message = message.Message

// NewMessage is message.New.
func NewMessage(data []byte) *Message { return message.New(data) }

// A PubsubMessage is a Pub/Sub message as Google's packages define it. They all mean one
// type: that of cloud.google.com/go/pubsub/v2/apiv1/pubsubpb, of which those of version 1
// of the client and of google.golang.org/genproto/googleapis/pubsub/v1, where a version of
// genproto has that, are aliases.
type PubsubMessage = pubsubpb.PubsubMessage
