package message_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func TestNew_WhatARecordDoesNotHaveAddsNothing(t *testing.T) {
	from := map[string]string{"b": "2", "empty": "", "": "no key"}
	got := message.New([]byte("x")).WithAttribute("a", "1").WithAttribute("none", "").WithAttributes(from).WithOrderingKey("k").WithOrderingKey("")
	want := &message.Message{Data: []byte("x"), Attributes: map[string]string{"a": "1", "b": "2"}, OrderingKey: "k"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := message.New(nil).WithAttributes(nil).WithAttribute("a", ""); got.Attributes != nil {
		t.Errorf("attributes of nothing: %v", got.Attributes)
	}
}

func ExampleNew() {
	type order struct{ ID, Customer, Country string }
	encode := func(o order) (*message.Message, error) {
		return message.New([]byte(o.ID)).WithAttribute("country", o.Country).WithOrderingKey(o.Customer), nil
	}
	m, _ := encode(order{ID: "17", Customer: "ada"})
	fmt.Println(string(m.Data), m.Attributes, m.OrderingKey)
	// Output: 17 map[] ada
}
