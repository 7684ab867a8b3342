package publish

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// The counts of the process told of an outage and of creations only once a bundle
// had finished: never, where it failed before.
func TestStats_TellOfABundleThatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopicService()
		outage := failing(3, status.Error(codes.Unavailable, "away"))
		missing := s.answer
		s.answer = func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			if err := outage(ctx, r); err != nil {
				return err
			}
			return missing(ctx, r)
		}
		p := newCreatingPool(t, s, options.Publisher{})
		b := open(t, p)
		mustAdd(t, b, "a")
		pass(time.Minute)
		// Three of the outage, one that says that the topic is missing.
		if e, c, n := p.stats.Errors.Load(), p.stats.TopicsCreated.Load(), p.stats.Published.Load(); e != 4 || c != 1 || n != 1 {
			t.Errorf("%d errors, %d topics created, %d published", e, c, n)
		}
		b.Drop()
		if e := p.stats.Errors.Load(); e != 4 {
			t.Errorf("%d errors after the bundle", e)
		}
	})
}
