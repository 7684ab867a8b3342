package pubsubtest_test

import (
	"strings"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
)

var publishLimitCases = []contractCase{
	{name: "what is within all limits is published", test: contractWithinLimits},
	{name: "9.9 MB of data are published", test: contractLarge},
	{name: "no message is refused", test: refused()},
	{name: "an empty message is refused", test: refused(data("good")[0], &pubsubpb.PubsubMessage{})},
	{name: "an ordering key alone is refused", test: refused(&pubsubpb.PubsubMessage{OrderingKey: "k"})},
	{name: "1,001 messages are refused", test: refused(data(strings.Split(strings.Repeat("x", 1001), "")...)...)},
	{name: "10 MB of data are refused", test: refused(data(strings.Repeat("x", 10_000_000))...)},
	{name: "101 attributes are refused", test: refused(&pubsubpb.PubsubMessage{Attributes: attributes(101)})},
	{name: "an empty key is refused", test: refusedAttribute("", "v")},
	{name: "a key of 257 bytes is refused", test: refusedAttribute(strings.Repeat("k", 257), "v")},
	{name: "a value of 1,025 bytes is refused", test: refusedAttribute("k", strings.Repeat("v", 1025))},
	{name: "a key that begins with goog is refused", test: refusedAttribute("googkey", "v")},
	{name: "a key that begins with GOOG is refused", test: refusedAttribute("GOOGkey", "v")},
	{name: "an ordering key of 1,025 bytes is refused", test: refused(&pubsubpb.PubsubMessage{Data: []byte("x"), OrderingKey: strings.Repeat("k", 1025)})},
	{name: "two ordering keys in a request are refused", test: contractTwoKeys},
}

// refused is a case of a request that is invalid, and of which nothing is stored.
func refused(msgs ...*pubsubpb.PubsubMessage) func(contract) {
	return func(c contract) {
		_, err := c.Publisher.Publish(c.t.Context(), &pubsubpb.PublishRequest{Topic: c.topic, Messages: msgs})
		wantCode(c.t, "publish", err, codes.InvalidArgument)
		c.wantEmpty()
	}
}

func refusedAttribute(key, value string) func(contract) {
	return refused(data("good")[0], &pubsubpb.PubsubMessage{Attributes: map[string]string{key: value}})
}

func contractWithinLimits(c contract) {
	long := map[string]string{strings.Repeat("k", 256): strings.Repeat("v", 1024), "googclient_traceparent": "v"}
	c.Publish(c.topic, &pubsubpb.PubsubMessage{Attributes: long, OrderingKey: strings.Repeat("k", 1024)})
	c.Publish(c.topic, &pubsubpb.PubsubMessage{Attributes: attributes(100)})
	if got := c.Drain(c.sub); len(got) != 2 {
		c.t.Errorf("%d messages, want 2", len(got))
	}
}

func contractLarge(c contract) {
	c.Publish(c.topic, data(strings.Repeat("x", 9_900_000))...)
	if got := c.Drain(c.sub); len(got) != 1 {
		c.t.Errorf("%d messages, want 1", len(got))
	}
}

func contractTwoKeys(c contract) {
	_, err := c.Publisher.Publish(c.t.Context(), &pubsubpb.PublishRequest{
		Topic: c.topic, Messages: append(keyed("k", "x"), keyed("l", "y")...),
	})
	wantCode(c.t, "publish", err, codes.FailedPrecondition)
	c.wantEmpty()
}
