package pubsubtest

// Stats counts what a subscription did since it was created, in messages unless
// a field says otherwise.
type Stats struct {
	// Published is what reached the subscription from its topic.
	Published int64
	// Delivered is the deliveries, those of a message that was delivered before
	// included.
	Delivered int64
	// Redelivered is the deliveries of messages that had been delivered before.
	Redelivered int64
	// Acknowledged is the messages that were acknowledged, each once, also where
	// message ordering delivers it again afterwards.
	Acknowledged int64
	// StaleAcks is the acknowledgements with an id of an earlier delivery or
	// after the end of the lease, of messages not yet acknowledged.
	StaleAcks int64
	// Lapsed is the leases that ended without an acknowledgement or a return.
	Lapsed int64
	// Returned is the deliveries that the client gave back, by a deadline of zero.
	Returned int64
	// Extensions is the leases that were given a new end, counted per message.
	Extensions int64
	// Recalled is the leases that ended because an earlier message of the same
	// ordering key came back: the message is delivered again after it.
	Recalled int64
	// Filtered is what the topic published and the filter kept away. Published
	// does not count it.
	Filtered int64
	// Purged is the messages that a seek made acknowledged.
	Purged int64
	// Restored is the messages that a seek brought back.
	Restored int64
	// DeadLettered is the messages that left for the dead-letter topic.
	DeadLettered int64
	// Outstanding is what is leased now.
	Outstanding int64
	// OutstandingBytes is the size of what is leased now.
	OutstandingBytes int64
	// MaxOutstanding is the most that Outstanding ever was.
	MaxOutstanding int64
	// MaxOutstandingBytes is the most that OutstandingBytes ever was.
	MaxOutstandingBytes int64
	// Backlog is what waits to be delivered, for the first time or again.
	Backlog int64
	// Streams is the number of streams that are open now.
	Streams int64
	// StreamsOpened is the number of streams that were ever opened.
	StreamsOpened int64
}

func (s *Stats) delivered(n int, bytes int64) {
	s.Delivered += int64(n)
	s.Outstanding += int64(n)
	s.OutstandingBytes += bytes
	s.MaxOutstanding = max(s.MaxOutstanding, s.Outstanding)
	s.MaxOutstandingBytes = max(s.MaxOutstandingBytes, s.OutstandingBytes)
}

func (s *Stats) released(n int, bytes int64) {
	s.Outstanding -= int64(n)
	s.OutstandingBytes -= bytes
}

// Stats returns the counts of a subscription; all are zero if there is none of
// that name.
func (s *Server) Stats(subscription string) Stats {
	q, err := s.resources.subscription(subscription)
	if err != nil {
		return Stats{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	stats := q.stats
	stats.Backlog = int64(q.backlogLocked())
	return stats
}
