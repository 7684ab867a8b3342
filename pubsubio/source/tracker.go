package source

import "errors"

// A tracker tracks a restriction through one bundle. ProcessElement claims a
// resumption or the end, once; a split at zero is answered only after it has
// decided to resume, because only then is the residual that of the attempt.
// Every other split is refused: prism would schedule the residual of one before
// the bundle has committed.
//
// It is used under the lock of an sdf.LockRTracker.
type tracker struct {
	restriction restriction
	residual    *restriction // set once ProcessElement has decided to resume
	done        bool
}

// Positions that ProcessElement claims.
type (
	// resumeAt ends the attempt; the rest goes on as that restriction.
	resumeAt restriction
	// finish ends the restriction.
	finish struct{}
)

// TryClaim implements sdf.RTracker.
func (t *tracker) TryClaim(position any) bool {
	if t.done || t.residual != nil {
		return false
	}
	switch p := position.(type) {
	case resumeAt:
		r := restriction(p)
		t.residual = &r
	case finish:
		t.done = true
	}
	return true
}

// TrySplit implements sdf.RTracker.
func (t *tracker) TrySplit(fraction float64) (primary, residual any, err error) {
	if fraction != 0 || t.residual == nil || t.done {
		return nil, nil, nil
	}
	t.done = true
	return t.restriction, *t.residual, nil
}

// GetError implements sdf.RTracker.
func (t *tracker) GetError() error {
	return nil
}

// GetProgress implements sdf.RTracker. An attempt is one piece of work.
func (t *tracker) GetProgress() (done, remaining float64) {
	if t.done {
		return 1, 0
	}
	return 0, 1
}

// IsDone implements sdf.RTracker.
func (t *tracker) IsDone() bool { return t.done }

// GetRestriction implements sdf.RTracker.
func (t *tracker) GetRestriction() any { return t.restriction }

// IsBounded implements sdf.BoundableRTracker: even a limited read resumes until
// everything is settled.
func (t *tracker) IsBounded() bool { return false }

var errUnclaimed = errors.New("source: the restriction was split while its bundle ended; the bundle is void and its messages are returned")
