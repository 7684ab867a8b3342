package pubsubtest_test

import (
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func TestPublish_Refuses(t *testing.T) {
	f := newFixture(t)
	many := make([]*pubsubpb.PubsubMessage, 1001)
	for i := range many {
		many[i] = data("x")[0]
	}
	for name, msgs := range map[string][]*pubsubpb.PubsubMessage{
		"no message":          {},
		"empty message":       {data("x")[0], {}},
		"ordering key alone":  {{OrderingKey: "k"}},
		"1,001 messages":      many,
		"10 MB and more":      data(strings.Repeat("x", 5_000_000), strings.Repeat("x", 5_000_000)),
		"reserved key":        {{Attributes: map[string]string{"GoogX": "v"}}},
		"empty key":           {{Data: []byte("x"), Attributes: map[string]string{"": "v"}}},
		"key of 257":          {{Data: []byte("x"), Attributes: map[string]string{strings.Repeat("k", 257): "v"}}},
		"value of 1,025":      {{Data: []byte("x"), Attributes: map[string]string{"k": strings.Repeat("v", 1025)}}},
		"value in characters": {{Data: []byte("x"), Attributes: map[string]string{"k": strings.Repeat("ü", 513)}}},
		"101 attributes":      {{Attributes: attributes(101)}},
		"ordering key long":   {{Data: []byte("x"), OrderingKey: strings.Repeat("k", 1025)}},
		"client's own prefix": {{Data: []byte("x"), Attributes: map[string]string{"googclient_schemaname": "v"}}},
	} {
		_, err := f.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topicA, Messages: msgs})
		wantCode(t, name, err, codes.InvalidArgument)
	}
	for name, msgs := range map[string][]*pubsubpb.PubsubMessage{
		"1,000 messages":   many[:1000],
		"almost 10 MB":     data(strings.Repeat("x", 5_000_000), strings.Repeat("x", 4_999_900)),
		"attributes alone": {{Attributes: map[string]string{"k": ""}}},
		"trace context":    {{Attributes: map[string]string{"googclient_traceparent": "v"}}},
		"all at the limits": {{
			Attributes:  map[string]string{strings.Repeat("k", 256): strings.Repeat("ü", 512)},
			OrderingKey: strings.Repeat("k", 1024),
		}},
		"100 attributes":     {{Attributes: attributes(100)}},
		"one key twice":      {{Data: []byte("x"), OrderingKey: "k"}, {Data: []byte("y"), OrderingKey: "k"}},
		"data of any bytes":  {{Data: []byte{0, 0xff}}},
		"a key and its case": {{Attributes: map[string]string{"goo": "v", "xgoog": "v"}}},
	} {
		_, err := f.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topicA, Messages: msgs})
		wantCode(t, name, err, codes.OK)
	}
	for name, m := range map[string]*message.Message{
		"empty":     {},
		"reserved":  {Attributes: map[string]string{"goog": "v"}},
		"not UTF-8": {Attributes: map[string]string{"k": "a\xc5z"}},
		"too large": {Data: make([]byte, 10_000_000)},
		"long key":  {Data: []byte("x"), OrderingKey: strings.Repeat("k", 1025)},
	} {
		_, err := f.srv.Publish(topicA, &message.Message{Data: []byte("good")}, m)
		wantCode(t, name, err, codes.InvalidArgument)
	}
	if got, want := f.srv.Published(topicA), int64(1000+2+4+1+1+2); got != want {
		t.Errorf("%d messages published, want %d", got, want)
	}
}

// attributes returns n attributes.
func attributes(n int) map[string]string {
	m := make(map[string]string, n)
	for i := range n {
		m[fmt.Sprint("key", i)] = "v"
	}
	return m
}

// A public report (yoshidan/google-cloud-rust#226) shows the status.
func TestPublish_RefusesSeveralOrderingKeys(t *testing.T) {
	f := newFixture(t)
	for name, keys := range map[string][2]string{
		"two keys":            {"a", "b"},
		"keyed after unkeyed": {"", "b"},
		"unkeyed after keyed": {"a", ""},
	} {
		_, err := f.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topicA, Messages: []*pubsubpb.PubsubMessage{
			{Data: []byte("x"), OrderingKey: keys[0]}, {Data: []byte("y"), OrderingKey: keys[1]},
		}})
		wantCode(t, name, err, codes.FailedPrecondition)
	}
	if n := f.srv.Published(topicA); n != 0 {
		t.Errorf("%d messages published, want 0", n)
	}
	// The direct way takes them: it is not one request.
	if _, err := f.srv.Publish(topicA, &message.Message{Data: []byte("x"), OrderingKey: "a"}, &message.Message{Data: []byte("y")}); err != nil {
		t.Error(err)
	}
}
