package pubsubtest

import (
	"github.com/beam-pubsub/beam-pubsub-go/internal/filter"
)

// maxFilter is the longest filter of a subscription, in bytes.
const maxFilter = 256

// parseFilter reads a subscription's filter; an empty one is none, which is nil.
func parseFilter(text string) (filter.Expression, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxFilter {
		return nil, tooMany("filter_bytes", len(text), maxFilter)
	}
	e, err := filter.Parse(text)
	if err != nil {
		return nil, invalid("Invalid filter: %v.", err)
	}
	return e, nil
}
