package main

import (
	"encoding/json"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func init() {
	t := reflect.TypeFor[*record]()
	beam.RegisterType(t)
	beam.RegisterCoder(t, encodeRecord, decodeRecord)
	sink.RegisterEncoder(recordMessage)
}

// A record is what the generator makes: a message and where it is to go.
type record struct {
	Message message.Message
	Topic   string
}

// recordMessage encodes a record, at no cost.
func recordMessage(r *record) (*message.Message, error) { return &r.Message, nil }

// A record goes from the generator to its consumer as it is: they are fused. Its
// coder is never called, yet needed.
func encodeRecord(r *record) ([]byte, error) { return json.Marshal(r) }

func decodeRecord(b []byte) (*record, error) {
	r := new(record)
	return r, json.Unmarshal(b, r)
}
