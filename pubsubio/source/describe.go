package source

import "github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"

// What package check, and tools like it, ask of a configuration.

// Queue returns the dead-letter queue of a policy that SendTo made, nil of any other.
func (p FailurePolicy) Queue() dlq.Queue { return p.queue }

// Own reports whether the subscription is the pipeline's own, as FromTopic makes it.
func (s Subscription) Own() bool { return s.own != "" && s.own == s.Name }
