package pubsubio

import (
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// A Service says which Pub/Sub [Service.Read] and [Service.Write] talk to, and as whom.
// The zero value is the global service with application default credentials, which the
// functions Read and Write use. It is a value of the program that builds the pipeline:
// what it says travels to the workers with each read and write.
//
//	var emulated = pubsubio.Service{EmulatorEndpoint: "localhost:8085"}
//
//	lines := emulated.Read(s, "shop", pubsubio.ReadOptions{Topic: "orders"})
//
// The environment variable PUBSUB_EMULATOR_HOST has no influence: a stray variable must
// not redirect a production pipeline.
type Service struct {
	// EmulatorEndpoint, Endpoint and ServiceAccountKeyFile are the fields of those names
	// in options.Connection, which says what they mean and refuse.
	EmulatorEndpoint, Endpoint, ServiceAccountKeyFile string
}

// source returns the Config of a read from the service.
func (at Service) source() source.Config {
	return source.Config{EmulatorEndpoint: at.EmulatorEndpoint, Endpoint: at.Endpoint, ServiceAccountKeyFile: at.ServiceAccountKeyFile}
}

// sink returns the Config of a write to the service.
func (at Service) sink() sink.Config {
	return sink.Config{EmulatorEndpoint: at.EmulatorEndpoint, Endpoint: at.Endpoint, ServiceAccountKeyFile: at.ServiceAccountKeyFile}
}
