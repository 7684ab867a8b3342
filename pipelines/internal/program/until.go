package program

import (
	"fmt"
	"strings"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// Until says in words when a read with that limit ends.
func Until(l options.Limit) string {
	var ends []string
	if l.MaxMessages > 0 {
		ends = append(ends, Grouped(l.MaxMessages)+" messages have come")
	}
	if l.StopWhenIdle > 0 {
		ends = append(ends, fmt.Sprintf("nothing has come for %v", l.StopWhenIdle))
	}
	if l.MaxDuration > 0 {
		ends = append(ends, fmt.Sprintf("%v have passed", l.MaxDuration))
	}
	return strings.Join(append(ends, "it is interrupted"), ", or ")
}
