package pubsubtest

// Redeliver ends the leases of all messages of a subscription that are outstanding, so
// that they are delivered again, as those of a worker that was killed or that took too
// long. It returns how many there were. An acknowledgement that is on its way still
// counts, as with the service. The error is that of the service, with its status.
func (s *Server) Redeliver(subscription string) (int, error) {
	sub, err := s.resources.subscription(subscription)
	if err != nil {
		return 0, during(err, "redeliver %s", subscription)
	}
	return sub.lapse(sub.leases.first), nil
}
