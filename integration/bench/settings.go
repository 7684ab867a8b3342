package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// settings are options by name, as "MaxRecordsPerBundle=1000".
type settings []string

// ours returns configurations of this module with s: fields of source.Config, of
// its Subscriber and of sink.Config's Publisher.
func (s settings) ours() (in source.Config, out sink.Config, err error) {
	err = s.set(&in, &in.Subscriber, &out.Publisher)
	return in, out, err
}

// client returns the client's best settings for l, changed by s.
func (s settings) client(l load) (clientSettings, error) {
	c := bestClient(l)
	err := s.set(&c, &c.PublishSettings, &c.Receive)
	if err == nil && c.Window < 1 {
		err = fmt.Errorf("a Window of %d: must be at least 1", c.Window)
	}
	return c, err
}

// set sets each option in every struct that has it.
func (s settings) set(targets ...any) error {
	for _, pair := range s {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q: want Option=value", pair)
		}
		found := false
		for _, target := range targets {
			field := reflect.ValueOf(target).Elem().FieldByName(name)
			if !field.IsValid() {
				continue
			}
			found = true
			if err := setField(field, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if !found {
			return fmt.Errorf("there is no option %s", name)
		}
	}
	return nil
}

func setField(field reflect.Value, value string) error {
	switch {
	case field.Type() == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(value)
		field.SetInt(int64(d))
		return err
	case field.CanInt():
		n, err := strconv.ParseInt(value, 10, 64)
		field.SetInt(n)
		return err
	default:
		return fmt.Errorf("an option of type %v cannot be set here", field.Type())
	}
}

func (s settings) String() string { return strings.Join(s, " ") }
