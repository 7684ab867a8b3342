// Package gcloud writes the commands of Google's command line that mend what is
// wrong: whole, so that they can be copied, with names and values quoted for a shell.
package gcloud

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// CreateTopic returns the command that creates a topic.
func CreateTopic(name string, c options.TopicCreate) string {
	w := on("topics create", name)
	if c.MessageRetention != 0 {
		w.flag("message-retention-duration", seconds(c.MessageRetention))
	}
	if c.KMSKeyName != "" {
		w.flag("topic-encryption-key", c.KMSKeyName)
	}
	if len(c.AllowedPersistenceRegions) > 0 {
		w.flag("message-storage-policy-allowed-regions", strings.Join(c.AllowedPersistenceRegions, ","))
	}
	if c.EnforceInTransit {
		w.add("--message-storage-policy-enforce-in-transit")
	}
	return w.String()
}

// CreateSubscription returns the command that creates a subscription.
func CreateSubscription(name string, c options.SubscriptionCreate) string {
	w := on("subscriptions create", name)
	w.flag("topic", c.Topic)
	if c.AckDeadline != 0 {
		w.flag("ack-deadline", strconv.FormatInt(int64(c.AckDeadline/time.Second), 10))
	}
	if c.EnableMessageOrdering {
		w.add("--enable-message-ordering")
	}
	if c.MessageRetention != 0 {
		w.flag("message-retention-duration", seconds(c.MessageRetention))
	}
	if c.RetainAckedMessages {
		w.add("--retain-acked-messages")
	}
	switch {
	case c.NeverExpire:
		w.flag("expiration-period", "never")
	case c.ExpirationTTL != 0:
		w.flag("expiration-period", seconds(c.ExpirationTTL))
	}
	if p := c.DeadLetterPolicy; p != nil {
		w.flag("dead-letter-topic", p.Topic)
		if p.MaxDeliveryAttempts != 0 {
			w.flag("max-delivery-attempts", strconv.Itoa(p.MaxDeliveryAttempts))
		}
	}
	if c.Filter != "" {
		w.flag("message-filter", c.Filter)
	}
	return w.String()
}

// UpdateSubscription returns the command that changes a subscription by flags, each as
// "--flag" or "--flag=value".
func UpdateSubscription(name string, flags ...string) string {
	w := on("subscriptions update", name)
	for _, f := range flags {
		w.add(f)
	}
	return w.String()
}

// Describe returns the command that shows what a subscription is.
func Describe(subscription string) string { return on("subscriptions describe", subscription).String() }

// Bind returns the command that grants g to a member, as "user:a@example.com": on the
// topic or subscription of that name, or on its project.
func Bind(name string, g iam.Grant, member string) string {
	project, collection, _ := split(name)
	if g.Project {
		// Without --condition it asks, where the project has conditional grants.
		w := words{"gcloud projects add-iam-policy-binding", Quote(project)}
		w.flag("member", member)
		w.flag("role", g.Role)
		w.flag("condition", "None")
		return w.String()
	}
	w := on(collection+" add-iam-policy-binding", name)
	w.flag("member", member)
	w.flag("role", g.Role)
	return w.String()
}

// ServiceAgent is the service's own account of the project of a resource, which
// forwards dead letters, as Bind takes it. Its name has the project's number, which a
// shell asks for.
func ServiceAgent(name string) string {
	project, _, _ := split(name)
	return shellMark + `"serviceAccount:service-$(gcloud projects describe ` + Quote(project) + ` --format='value(projectNumber)')@gcp-sa-pubsub.iam.gserviceaccount.com"`
}

// shellMark begins what is the shell's to expand, and so is not quoted.
const shellMark = "\x00"

// words are those of a command, quoted.
type words []string

// on begins a command about a topic or a subscription.
func on(command, name string) *words {
	project, _, id := split(name)
	w := &words{"gcloud pubsub " + command, Quote(id)}
	w.flag("project", project)
	return w
}

func (w *words) add(word string) { *w = append(*w, Quote(word)) }

func (w *words) flag(name, value string) { *w = append(*w, "--"+name+"="+Quote(value)) }

func (w *words) String() string { return strings.Join(*w, " ") }

// split takes a full name apart.
func split(name string) (project, collection, id string) {
	parts := strings.SplitN(name, "/", 4)
	if len(parts) < 4 {
		return "", "", name
	}
	return parts[1], parts[2], parts[3]
}

// seconds writes a duration as gcloud reads it.
func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int64(d/time.Second)) }

// Quote returns a word as a POSIX shell takes it.
func Quote(word string) string {
	if expanded, ok := strings.CutPrefix(word, shellMark); ok {
		return expanded
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func special(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("-_./:=,@+%", r)
}
