package filter_test

import (
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/internal/filter"
)

func Example() {
	e, err := filter.Parse(`hasPrefix(attributes.event, "order.") AND attributes.region != "us-east"`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Matches(map[string]string{"event": "order.paid", "region": "eu-west"}))
	fmt.Println(e.Matches(map[string]string{"event": "order.paid", "region": "us-east"}))

	_, err = filter.Parse(`attributes.event = order`)
	fmt.Println(err)
	// Output:
	// true
	// false
	// at character 20, order: here must be a string in double quotes, as in attributes.event = "order"
}
