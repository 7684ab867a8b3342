package pubsubtest

// A ring keeps the latest values pushed to it.
type ring[T any] struct {
	limit  int // Unlimited, or the most that are kept; zero keeps none
	values []T
	oldest int // index of the oldest value, once values has reached limit
}

func (r *ring[T]) push(v T) {
	switch {
	case r.limit == 0:
	case r.limit == Unlimited || len(r.values) < r.limit:
		r.values = append(r.values, v)
	default:
		r.values[r.oldest] = v
		r.oldest = (r.oldest + 1) % r.limit
	}
}

// each calls f with the latest n values, or as many as are kept, the oldest first.
func (r *ring[T]) each(n uint64, f func(T)) {
	first := 0
	if n < uint64(len(r.values)) {
		first = len(r.values) - int(n)
	}
	for i := first; i < len(r.values); i++ {
		f(r.values[(r.oldest+i)%len(r.values)])
	}
}
