package options

import (
	"fmt"
	"regexp"
	"time"
)

// Bounds of a topic's message retention, from the Pub/Sub documentation
// (https://cloud.google.com/pubsub/docs/topic-retention).
const (
	minTopicRetention = 10 * time.Minute
	maxTopicRetention = 31 * 24 * time.Hour
)

// A CreateDisposition says what becomes of a record whose topic does not exist.
type CreateDisposition int

const (
	// CreateIfNeeded creates a missing topic, once, and publishes to it then. The
	// workers' account needs pubsub.topics.create on the project. Looking whether a
	// topic exists is not part of it: only the service's answer that it does not
	// leads to a creation.
	CreateIfNeeded CreateDisposition = iota
	// CreateNever fails the bundle.
	CreateNever
)

func (d CreateDisposition) String() string {
	switch d {
	case CreateIfNeeded:
		return "options.CreateIfNeeded"
	case CreateNever:
		return "options.CreateNever"
	default:
		return fmt.Sprintf("options.CreateDisposition(%d)", int(d))
	}
}

// Faults records in f whether d is no disposition; field is how its user names it.
func (d CreateDisposition) Faults(f *Faults, field string) {
	if d != CreateIfNeeded && d != CreateNever {
		f.Add(field, int(d), "must be options.CreateIfNeeded or options.CreateNever")
	}
}

// TopicCreate holds the settings of topics that a sink creates, one set for all of
// them. They are applied at creation only: a topic that exists keeps its own, and
// is never compared with these. The zero value leaves everything to the service.
type TopicCreate struct {
	// MessageRetention is how long the topic itself keeps messages, acknowledged or
	// not, so that a later subscription or a seek can reach them. Default: not at
	// all. 10 min to 31 days.
	MessageRetention time.Duration

	// KMSKeyName is the Cloud KMS key that encrypts the messages,
	// projects/<project>/locations/<location>/keyRings/<ring>/cryptoKeys/<key>.
	// Default: encryption that Google manages.
	KMSKeyName string

	// AllowedPersistenceRegions are the only regions that may store the messages, as
	// "europe-west1". Default: whatever the organisation's policy allows.
	AllowedPersistenceRegions []string

	// EnforceInTransit also refuses publishing and delivery through other regions.
	// It needs AllowedPersistenceRegions. Default false.
	EnforceInTransit bool
}

// IsSet reports whether c says anything.
func (c TopicCreate) IsSet() bool {
	return c.MessageRetention != 0 || c.KMSKeyName != "" || len(c.AllowedPersistenceRegions) > 0 || c.EnforceInTransit
}

var (
	kmsKeyName = regexp.MustCompile(`^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$`)
	regionName = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+$`)
)

// Faults records in f each rule that c breaks.
func (c TopicCreate) Faults(f *Faults) {
	const in = "options.TopicCreate."
	if d := c.MessageRetention; d != 0 && (d < minTopicRetention || d > maxTopicRetention) {
		f.Add(in+"MessageRetention", d, fmt.Sprintf("must be %v to %v", minTopicRetention, maxTopicRetention))
	}
	if c.KMSKeyName != "" && !kmsKeyName.MatchString(c.KMSKeyName) {
		f.Add(in+"KMSKeyName", fmt.Sprintf("%q", c.KMSKeyName), "must be projects/<project>/locations/<location>/keyRings/<ring>/cryptoKeys/<key>")
	}
	for i, region := range c.AllowedPersistenceRegions {
		if !regionName.MatchString(region) {
			f.Add(fmt.Sprintf("%sAllowedPersistenceRegions[%d]", in, i), fmt.Sprintf("%q", region), `must be a region, as "europe-west1"`)
		}
	}
	if c.EnforceInTransit && len(c.AllowedPersistenceRegions) == 0 {
		f.Add(in+"EnforceInTransit", true, "needs AllowedPersistenceRegions")
	}
}
