package publish

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Counts says what became of a bundle's messages so far.
type Counts struct {
	DestinationCounts

	// ErrorsByCode are the Errors by their status.
	ErrorsByCode map[codes.Code]int64
	// Destinations has the counts of each topic; nil without PerDestinationMetrics.
	Destinations map[string]DestinationCounts
	// TopicsCreated is how many topics were created for messages of the bundle.
	TopicsCreated int64
	// ShutdownsAbandoned is how many publishers did not end within ShutdownTimeout
	// when the bundle needed their place.
	ShutdownsAbandoned int64
}

// DestinationCounts is the part of Counts that each topic has.
type DestinationCounts struct {
	Published int64 // messages that the service answered with success
	Bytes     int64 // of those, serialized
	Errors    int64 // attempts at requests with messages of the bundle that failed
}

// published notes that s was stored in topic.
func (c *Counts) published(topic string, s share) {
	c.Published += int64(s.messages)
	c.Bytes += s.bytes
	if c.Destinations != nil {
		d := c.Destinations[topic]
		d.Published += int64(s.messages)
		d.Bytes += s.bytes
		c.Destinations[topic] = d
	}
}

// failed notes that an attempt for topic ended in err.
func (c *Counts) failed(topic string, err error) {
	c.Errors++
	if c.ErrorsByCode == nil {
		c.ErrorsByCode = make(map[codes.Code]int64)
	}
	c.ErrorsByCode[status.Code(err)]++
	if c.Destinations != nil {
		d := c.Destinations[topic]
		d.Errors++
		c.Destinations[topic] = d
	}
}

// A Load is what a pool holds at one moment, for all of its bundles.
type Load struct {
	Messages int   // taken in and not yet answered
	Bytes    int64 // of those, serialized
	Parked   int   // of those, how many wait for a missing topic
}
