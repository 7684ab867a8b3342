package source

import (
	"fmt"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// refuses returns why a subscription with these properties cannot be read, nil
// where it can. A response may tell none. Startup has looked at them where it was
// allowed to; they may also change while the subscription is read.
func (r *reader) refuses(p *pubsubpb.StreamingPullResponse_SubscriptionProperties) error {
	switch {
	case p == nil:
		return nil
	case p.GetExactlyOnceDeliveryEnabled():
		return fmt.Errorf("source: pull from %s: the subscription has exactly-once delivery enabled, under which an acknowledgement counts only while it is confirmed in time, "+
			"and a bundle's commit may take longer: turn exactly-once delivery off on the subscription, and deduplicate downstream", r.subscription)
	case r.config.Ordering == options.PerKey && !p.GetMessageOrderingEnabled():
		return fmt.Errorf("source: pull from %s: source.Config.Ordering is options.PerKey, and the subscription has no message ordering: "+
			"create it anew with message ordering enabled, or read it with options.Unordered", r.subscription)
	}
	return nil
}
