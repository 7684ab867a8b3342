package source

// setAside leaves a message of the attempt to others, without waiting for its bundle: it
// stays held and leased, so that the service sends it to nobody, until the streams are
// closed, and is returned then. Returned at once it would come again at once, and a read
// that waits to be idle would never end.
func (r *reader) setAside(a *attempt, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, err := r.withdrawLocked(a, id)
	if err != nil {
		return err
	}
	h.state = aside
	r.aside = append(r.aside, h)
	r.asideBytes += h.size
	o := r.config.Subscriber
	if len(r.aside) >= o.MaxOutstandingMessages || r.asideBytes >= o.MaxOutstandingBytes {
		r.failure = errAllAside(r.subscription, len(r.aside), r.asideBytes) // The service sends nothing more.
	}
	return r.failure
}

// takeAsideLocked returns what was set aside, which is nobody's then.
func (r *reader) takeAsideLocked() []*held {
	items := r.aside
	r.aside, r.asideBytes = nil, 0
	return items
}
