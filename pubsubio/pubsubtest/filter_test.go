package pubsubtest_test

import (
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func TestFilter_DeliversWhatMatches(t *testing.T) {
	f := newFixture(t)
	messages := []*pubsubpb.PubsubMessage{
		{Data: []byte("com"), Attributes: map[string]string{"name": "com", "lang": "en"}},
		{Data: []byte("co"), Attributes: map[string]string{"name": "co"}},
		{Data: []byte("org"), Attributes: map[string]string{"name": "org", "iana.org/language_tag": "en"}},
		{Data: []byte("quote"), Attributes: map[string]string{"name": `a"b`}},
		{Data: []byte("none")},
	}
	for filter, want := range map[string]string{
		`-attributes:name`:         "none",
		`attributes.name = "a\"b"`: "quote",
		`hasPrefix(attributes.name, "co") OR attributes."iana.org/language_tag" = "en"`: "com co org",
	} {
		t.Run(filter, func(t *testing.T) {
			f.CreateSubscription(subB, topicA, func(s *pubsubpb.Subscription) { s.Filter = filter })
			f.Publish(topicA, messages...)
			var got []string
			for _, m := range f.Drain(subB) {
				got = append(got, string(m.GetData()))
			}
			if g := strings.Join(got, " "); g != want {
				t.Errorf("got %q, want %q", g, want)
			}
			if s := f.srv.Stats(subB); s.Published+s.Filtered != int64(len(messages)) || s.Published != int64(len(got)) {
				t.Errorf("stats %+v", s)
			}
			if err := f.srv.DeleteSubscription(subB); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// What a filter says is internal/filter's to test.
func TestFilter_BadOnesAreRefused(t *testing.T) {
	f := newFixture(t)
	for _, filter := range []string{
		`x`, `attributes.name = "com`, `attributes:a AND attributes:b OR attributes:c`,
		`attributes:` + strings.Repeat("k", 246),
	} {
		_, err := f.Subscriber.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: subB, Topic: topicA, Filter: filter})
		wantCode(t, filter, err, codes.InvalidArgument)
	}
	wantCode(t, "through the option", f.srv.CreateSubscription(subB, topicA, pubsubtest.Filter("x")), codes.InvalidArgument)
	f.srv.MustCreateSubscription(subB, topicA, pubsubtest.Filter("attributes:"+strings.Repeat("k", 245)))
}
