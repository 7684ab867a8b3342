package source

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// encoded is a message as the service delivers it from a topic with a schema.
func encoded(data []byte, encoding string) *message.Message {
	return &message.Message{ID: "1", Data: data, Attributes: map[string]string{
		"googclient_schemaname": "projects/p/schemas/s", "googclient_schemaencoding": encoding, "googclient_schemarevisionid": "0a1b2c3d",
	}}
}

func decodeOne[T any](t *testing.T, decode DecodeFunc[T], m *message.Message) (record T, err error) {
	t.Helper()
	n := 0
	err = decode(m, func(r T) { record = r; n++ })
	if (n == 1) != (err == nil) {
		t.Errorf("%d records, error %v", n, err)
	}
	return record, err
}

// A topic's schema may have its protocol buffers in JSON, which the wire form takes for
// rubbish, or for another message.
func TestProto_FollowsTheEncodingOfTheSchema(t *testing.T) {
	want := wrapperspb.String("tea")
	wire, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*message.Message{
		"no schema":         {Data: wire},
		"BINARY":            encoded(wire, "BINARY"),
		"JSON":              encoded([]byte(`"tea"`), "JSON"),
		"one of the future": encoded(wire, "CBOR"),
	} {
		if got, err := decodeOne(t, Proto[*wrapperspb.StringValue], m); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: %v, error %v", name, got, err)
		}
	}
	if _, err := decodeOne(t, Proto[*structpb.Struct], encoded([]byte(`{"a":1}`), "JSON")); err != nil {
		t.Error(err)
	}
}

// protojson quotes what it does not like.
func TestProto_AJSONFailureQuotesNoData(t *testing.T) {
	for _, data := range []string{"", "s3cret", `{"s3cret":1}`, `"s3cret`, `["s3cret"]`, "1 s3cret"} {
		_, err := decodeOne(t, Proto[*wrapperspb.StringValue], encoded([]byte(data), "JSON"))
		if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "google.protobuf.StringValue") {
			t.Errorf("%q: %v", data, err)
		}
	}
}

// Avro and protocol buffers in their binary forms are no JSON: "invalid character" would
// not say why.
func TestJSON_FollowsTheEncodingOfTheSchema(t *testing.T) {
	if got, err := decodeOne(t, JSON[order], encoded([]byte(`{"id":"a"}`), "JSON")); err != nil || got.ID != "a" {
		t.Errorf("%+v, error %v", got, err)
	}
	_, err := decodeOne(t, JSON[order], encoded([]byte("\x02a"), "BINARY"))
	if err == nil || !strings.Contains(err.Error(), "BINARY encoding of its topic's schema") || !strings.Contains(err.Error(), "source.Proto") {
		t.Errorf("error %v", err)
	}
}
