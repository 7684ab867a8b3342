package fit

import (
	"strings"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/gcloud"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// LettersMissing is the fault of a dead-letter topic that does not exist.
func LettersMissing(topic string) Fault {
	return Fault{
		Text:     "does not exist, and the queue never creates it, for nothing would be consuming it",
		Remedy:   "create it with " + gcloud.CreateTopic(topic, options.TopicCreate{}) + ", and a subscription of it",
		Commands: newLetters(topic),
	}
}

// LettersUnread is the fault of a dead-letter topic without a subscription. A queue
// works all the same.
func LettersUnread(topic string) Fault {
	return Fault{
		Text:     "has no subscription, so that every dead letter is lost",
		Remedy:   "create one with gcloud pubsub subscriptions create NAME --topic=" + topic,
		Commands: newLetters(topic)[1:],
	}
}

// newLetters are the commands that create a dead-letter topic and its subscription.
func newLetters(topic string) []string {
	return []string{
		gcloud.CreateTopic(topic, options.TopicCreate{}),
		gcloud.CreateSubscription("projects/"+project(topic)+"/subscriptions/"+id(topic), options.SubscriptionCreate{Topic: topic, NeverExpire: true}),
	}
}

// Forwards are the commands that grant the service's own account what it needs to
// forward messages of a subscription to its dead-letter topic.
func Forwards(subscription, topic string) []string {
	agent := gcloud.ServiceAgent(subscription)
	return []string{gcloud.Bind(topic, iam.Publish, agent), gcloud.Bind(subscription, iam.Consume, agent)}
}

func project(name string) string {
	project, _, _ := strings.Cut(strings.TrimPrefix(name, "projects/"), "/")
	return project
}

func id(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
