package sink

import "github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"

// Queue returns the dead-letter queue of a policy that SendTo made, nil of any other:
// for package check, and tools like it.
func (p FailurePolicy) Queue() dlq.Queue { return p.queue }
