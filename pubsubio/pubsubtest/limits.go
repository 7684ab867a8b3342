package pubsubtest

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Limits of the service, from "Quotas and limits" in the Pub/Sub documentation
// (https://cloud.google.com/pubsub/quotas#resource_limits). Sizes are in bytes.
const (
	maxPublishBytes     = 10_000_000
	maxPublishMessages  = 1000
	maxAttributes       = 100
	maxAttributeKey     = 256
	maxAttributeValue   = 1024
	maxOrderingKey      = 1024
	maxAcknowledgeBytes = 512 << 10
)

// Bounds of an acknowledgement deadline, in seconds.
const (
	minAckDeadline     = 10
	defaultAckDeadline = minAckDeadline
	maxAckDeadline     = 600
)

// Bounds of a dead-letter policy's maximum of delivery attempts.
const (
	minDeliveryAttempts     = 5
	defaultDeliveryAttempts = minDeliveryAttempts
	maxDeliveryAttempts     = 100
)

// Bounds of how long messages are retained, subscriptions live without use, and
// redelivery is put off.
const (
	minRetention      = 10 * time.Minute
	defaultRetention  = 7 * day
	maxRetention      = 31 * day
	minExpiration     = day
	defaultExpiration = 31 * day
	maxRetryBackoff   = 600 * time.Second

	day = 24 * time.Hour
)

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func tooLarge(limit int) error {
	return invalid("Request payload size exceeds the limit: %d bytes.", limit)
}

// tooMany and tooFew are the service's words for a count out of its bounds.
func tooMany(what string, n, limit int) error {
	return invalid("The value for %s is too large. You passed %d in the request, but the maximum value is %d.", what, n, limit)
}

func tooFew(what string, n, limit int) error {
	return invalid("The value for %s is too small. You passed %d in the request, but the minimum value is %d.", what, n, limit)
}

// errSeveralKeys is a publish request of messages that differ in their ordering
// key. A public report shows the status.
var errSeveralKeys = status.Error(codes.FailedPrecondition,
	"In a single publish request, all messages must have no ordering key or they must all have the same ordering key.")

func outOfRange(what string, d, least, most time.Duration) error {
	return invalid("Invalid %s given: (%v). It must be between %v and %v.", what, d, least, most)
}

// badName is for a resource name that breaks the rule that err tells.
func badName(err error) error { return invalid("Invalid resource name given: %v.", err) }
