package publish

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func attributes(n int) map[string]string {
	out := make(map[string]string, n)
	for i := range n {
		out[fmt.Sprintf("key%d", i)] = "secret"
	}
	return out
}

func TestCheck_NamesTheRuleAndNoContent(t *testing.T) {
	with := func(k, v string) *message.Message {
		return &message.Message{Data: []byte("secret"), Attributes: map[string]string{k: v}}
	}
	for name, tc := range map[string]struct {
		m    *message.Message
		want string
	}{
		"empty":             {&message.Message{OrderingKey: "secret"}, "it is empty: it needs data or at least one attribute"},
		"empty maps":        {&message.Message{Data: []byte{}, Attributes: map[string]string{}}, "it is empty"},
		"101 attributes":    {&message.Message{Attributes: attributes(101)}, "it has 101 attributes, the limit is 100"},
		"empty key":         {with("", "secret"), "an attribute has an empty key"},
		"key of 257":        {with(strings.Repeat("k", 257), "secret"), `kkkk"… has 257 bytes, the limit is 256`},
		"key in bytes":      {with(strings.Repeat("é", 129), "secret"), "has 258 bytes, the limit is 256"},
		"key UTF-8":         {with("a\xc5z", "secret"), `the key of attribute "a\xc5z" is not valid UTF-8`},
		"reserved key":      {with("Googclient_x", "secret"), `attribute "Googclient_x" is reserved`},
		"value of 1,025":    {with("k", strings.Repeat("v", 1025)), `the value of attribute "k" has 1025 bytes, the limit is 1024`},
		"value UTF-8":       {with("k", "secret\xc5z"), `the value of attribute "k" is not valid UTF-8`},
		"key of 1,025":      {&message.Message{Data: []byte("x"), OrderingKey: strings.Repeat("k", 1025)}, "its ordering key has 1025 bytes, the limit is 1024"},
		"ordering key UTF8": {&message.Message{Data: []byte("x"), OrderingKey: "secret\xff"}, "its ordering key is not valid UTF-8"},
		"too large":         {&message.Message{Data: make([]byte, options.MaxRequestBytes)}, "alone it makes a request of 10000033 bytes, the limit is 10000000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := check(tc.m, options.MaxRequestBytes-len(requestHeader(topic)))
			var rule *RuleError
			if !errors.As(err, &rule) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("check: %v, want %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "secret") || len(err.Error()) > 300 {
				t.Errorf("the error tells too much: %.300s", err)
			}
		})
	}
}

func TestCheck_AcceptsWhatTheServiceAccepts(t *testing.T) {
	room := options.MaxRequestBytes - len(requestHeader(topic))
	largest := &message.Message{Data: bytes.Repeat([]byte{1}, room-10)}
	for sizeFramed(sizeMessage(largest)) > room {
		largest.Data = largest.Data[1:]
	}
	if got := proto.Size(&pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{largest.PublishProto()}}); got > options.MaxRequestBytes || got < options.MaxRequestBytes-1 {
		t.Fatalf("the largest message makes a request of %d bytes", got)
	}
	for name, m := range map[string]*message.Message{
		"empty data with an attribute": {Attributes: map[string]string{"k": ""}},
		"100 attributes":               {Attributes: attributes(100)},
		"key of 256, value of 1,024":   {Attributes: map[string]string{strings.Repeat("k", 256): strings.Repeat("v", 1024)}},
		"data of any bytes":            {Data: []byte{0xff, 0, 0xc5}},
		"trace context":                {Attributes: map[string]string{"googclient_traceparent": "00"}},
		"the largest":                  largest,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := check(m, room); err != nil {
				t.Error(err)
			}
		})
	}
}
