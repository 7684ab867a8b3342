package source

import (
	"fmt"
	"strings"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fit"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// needs is what c asks of its subscriptions.
func (c Config) needs() fit.Read {
	return fit.Read{
		Ordered: c.Ordering == options.PerKey,
		Nacks:   c.OnDecodeFailure.kind == nack,
		Letters: c.OnDecodeFailure.topic(),
	}
}

// unfit says all that keeps a subscription from being read as c says, each with what
// mends it.
func (c Config) unfit(s *pubsubpb.Subscription) []string { return fit.Texts(c.needs().Faults(s)) }

// maxNamed is how many names a warning holds.
const maxNamed = 5

// warnUnseen says once what was assumed of subscriptions that may not be looked up.
// It is no fault to read with roles/pubsub.subscriber alone, which may pull and may
// not look.
func (s *startup) warnUnseen() {
	var names []string
	for _, c := range s.candidates {
		if c.unseen {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	n := len(names)
	if n > maxNamed {
		names = append(names[:maxNamed], fmt.Sprintf("and %d more", n-maxNamed))
	}
	warn("subscriptions may not be looked up, so nothing of them was checked; grant "+iam.GetSubscription.Permission+", as "+iam.GetSubscription.Role+" has it",
		"subscriptions", strings.Join(names, ", "), "assumed", "each "+s.config.needs().Assumed())
}
