package source

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/googleapis/gax-go/v2"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

const (
	// ownExpiration is how long a subscription of FromTopic stays without a reader. It
	// is more than the 7 days for which the service keeps messages by default: nothing
	// is lost by it that would still be there.
	ownExpiration = 8 * 24 * time.Hour
	// maxTopicPart is how much of a topic's id is in the id of its subscription, which
	// may have 255 bytes.
	maxTopicPart = 200
	// deleteLimit is how long the deletion at the end of a run may take.
	deleteLimit = 20 * time.Second
)

// FromTopic returns a new subscription of the topic of that full name, for one pipeline
// alone, as Config.Subscriptions takes it. It is in the given project, whatever that of
// the topic is, and has a name that nothing else has:
//
//	projects/<project>/subscriptions/beam-<id of the topic>-<time, in UTC>-<random>
//
// The job creates it when it starts, logs its name at level info, and gets what is
// published from then on; options.SubscriptionCreate says what the account needs.
//
// pubsubio.Run deletes it, and what was not read with it, when a run on prism or on the
// direct runner has ended, however it has (pubsub.subscriptions.delete, which
// roles/pubsub.editor has); a warning says where that has failed. On other runners the
// job may go on without the program, and a process may be killed: nobody deletes it
// then, and the service does once nothing has read it for 8 days.
func FromTopic(project, topic string) []Subscription {
	name := "projects/" + project + "/subscriptions/" + ownID(topic, time.Now())
	return []Subscription{{
		Name:   name,
		Create: &options.SubscriptionCreate{Topic: topic, ExpirationTTL: ownExpiration},
		own:    name,
	}}
}

// ownID makes the id of a subscription. The time tells which of them are old: the
// service tells nobody when a subscription was created.
func ownID(topic string, now time.Time) string {
	of := ""
	if name, err := message.ParseTopic(topic); err == nil { // Validate says what is wrong with it.
		of = name.ID[:min(len(name.ID), maxTopicPart)] + "-"
	}
	random := uuid.New()
	return fmt.Sprintf("beam-%s%s-%x", of, now.UTC().Format("20060102-150405"), random[:6])
}

// own returns the subscriptions that are this read's alone: those that still have the
// names that FromTopic gave them. Whatever else has Create may be somebody else's, too.
func (c Config) own() []string {
	var names []string
	for _, s := range c.Subscriptions {
		if s.Own() {
			names = append(names, s.Name)
		}
	}
	return names
}

// EndRun deletes what the read had for itself. It makes the DoFn a run.Ender.
func (fn *startupFn) EndRun() error {
	fn.deleteOwn()
	return nil
}

// EndRun is that of startupFn: the direct runner has no other.
func (fn *boundedFn) EndRun() error {
	fn.deleteOwn()
	return nil
}

// deleteOwn deletes the subscriptions of FromTopic once nothing reads them any more.
// Where the job runs elsewhere it may go on, whatever has ended the wait for it.
//
// What remains expires, so a failure is told and fails nothing. What this process did
// not create, because the pipeline failed before or runs elsewhere, is no loss either.
func (s *settings) deleteOwn() {
	local := s.Binding.Prism || s.Binding.Rule == run.Pipeline
	names := s.Config.own()
	if len(names) == 0 || !local || !stats.ForSource(s.Nonce).Created.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteLimit)
	defer cancel()
	calls, err := dialStartup(s.Config)
	if err != nil {
		leftOver(names[0], err)
		return
	}
	defer calls.close()
	for _, name := range names {
		if err := deleteSubscription(ctx, name, calls.remove); err != nil {
			leftOver(name, err)
			continue
		}
		slog.Info("source: subscription deleted", "subscription", name)
	}
}

// deleteSubscription deletes a subscription, or finds it gone. One that was created a
// moment ago may not be known everywhere yet, and one whose creation was cut off may
// still appear: missing counts when it was told often enough.
func deleteSubscription(ctx context.Context, name string, remove func(context.Context, string) error) error {
	missing := 0
	for pause := firstStartupPause; ; pause *= 2 {
		err := remove(ctx, name)
		if err == nil {
			return nil
		}
		switch transport.Classify(ctx, err) {
		case transport.Missing:
			if missing++; missing == maxMissing {
				return nil
			}
		case transport.Retryable:
		default:
			return err
		}
		if gax.Sleep(ctx, pause) != nil {
			return err
		}
	}
}

// leftOver tells of a subscription that nobody needs any more.
func leftOver(name string, err error) {
	warn("the read's own subscription could not be deleted; it collects messages until it expires, or until somebody deletes it",
		"subscription", name, "expires after", ownExpiration,
		"status", transport.Describe(err)+clause(transport.Remedy(err, iam.DeleteSubscription)))
}
