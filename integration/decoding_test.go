package integration

import (
	"context"
	"errors"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() {
	source.RegisterDecoder(decodeBroken)
	source.RegisterDecoder(decodePanicking)
}

var permissionDenied = status.Error(codes.PermissionDenied, "User not authorized to perform this action.")

func decodeBroken(m *message.Message, emit func(*message.Message)) error {
	if string(m.Data) == "0000015" {
		return errors.New("number 15 is broken")
	}
	emit(m)
	return nil
}

func decodePanicking(m *message.Message, emit func(*message.Message)) error {
	if string(m.Data) == "0000015" {
		panic("number 15 is broken")
	}
	emit(m)
	return nil
}

// runDecoding reads everything with a decoder.
func runDecoding(ctx context.Context, srv *pubsubtest.Server, decode source.DecodeFunc[*message.Message]) error {
	p, s := beam.NewPipelineWithRoot()
	beam.ParDo0(s, drop, source.Read(s, relayOf(srv, options.Limit{}).source, decode))
	return runPipeline(ctx, p)
}
