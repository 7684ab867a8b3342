package pubsubtest

import (
	"strconv"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A stored message is shared by the subscriptions of its topic and does not
// change once it is published.
//
// The wire form is a part of the request that published it: nothing is decoded
// or copied between a publish and a delivery but the bytes themselves. A request
// is therefore let go with the last of its messages.
type stored struct {
	wire      []byte // a PubsubMessage as it was published: without id and time
	id        uint64
	published int64 // Unix nanoseconds
}

// size is what the message counts for in flow control.
func (m *stored) size() int64 { return int64(len(m.wire)) }

func (m *stored) idString() string { return strconv.FormatUint(m.id, 10) }

// proto decodes the message, with its id and publish time.
func (m *stored) proto() *pubsubpb.PubsubMessage {
	p := new(pubsubpb.PubsubMessage)
	// The wire form was checked when the message was published.
	_ = proto.Unmarshal(m.wire, p)
	p.MessageId = m.idString()
	p.PublishTime = timestamppb.New(time.Unix(0, m.published))
	return p
}

func (m *stored) message(attempt int) *message.Message {
	return message.FromProto(m.proto(), attempt)
}

// attributes decodes the message's attributes, for filters.
func (m *stored) attributes() map[string]string {
	p := new(pubsubpb.PubsubMessage)
	_ = proto.Unmarshal(m.wire, p) // the wire form was checked
	return p.GetAttributes()
}
