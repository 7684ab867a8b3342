package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// A fault is what --delay and --fail ask of a method.
type fault struct {
	rule   pubsubtest.Rule
	action pubsubtest.Action
}

// methods are those that a fault may be asked of.
var methods = map[string]bool{"Publish": true, "StreamingPull": true, "Pull": true, "Acknowledge": true, "ModifyAckDeadline": true}

func method(text, name string) error {
	if !methods[name] {
		return fmt.Errorf("%s: want Publish, StreamingPull, Pull, Acknowledge or ModifyAckDeadline", text)
	}
	return nil
}

// parseDelay reads METHOD=DURATION.
func parseDelay(text string) (fault, error) {
	name, length, _ := strings.Cut(text, "=")
	if err := method(text, name); err != nil {
		return fault{}, err
	}
	d, err := time.ParseDuration(length)
	if err != nil || d < 0 {
		return fault{}, fmt.Errorf("%s: want a duration, such as Publish=20ms", text)
	}
	return fault{rule: pubsubtest.Rule{Method: name}, action: pubsubtest.Wait(d)}, nil
}

// parseFail reads METHOD=CODE or METHOD=CODE:PROBABILITY.
func parseFail(text string) (fault, error) {
	name, how, _ := strings.Cut(text, "=")
	if err := method(text, name); err != nil {
		return fault{}, err
	}
	word, chance, limited := strings.Cut(how, ":")
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(strconv.Quote(word))); err != nil || code == codes.OK {
		return fault{}, fmt.Errorf("%s: want a status, such as Publish=UNAVAILABLE:0.01", text)
	}
	f := fault{rule: pubsubtest.Rule{Method: name}, action: pubsubtest.Fail(status.Error(code, "as asked by --fail"))}
	if limited {
		p, err := strconv.ParseFloat(chance, 64)
		if err != nil || !(p > 0 && p <= 1) {
			return fault{}, fmt.Errorf("%s: want a probability above 0 and at most 1", text)
		}
		f.rule.Probability = p
	}
	return f, nil
}

func isNoJSON(m *message.Message) bool { return !json.Valid(m.Data) }

// order gives the server the faults that the flags name.
func order(srv *pubsubtest.Server, f flags) error {
	for _, of := range []struct {
		texts list
		parse func(string) (fault, error)
	}{{f.delays, parseDelay}, {f.fails, parseFail}} {
		for _, text := range of.texts {
			fault, err := of.parse(text)
			if err != nil {
				return err
			}
			srv.Order(fault.rule, fault.action)
		}
	}
	for _, topic := range f.jsonOnly {
		if !slices.Contains(f.topics, topic) {
			return fmt.Errorf("--json-only=%s: want a topic that --topic creates", topic)
		}
		srv.Order(pubsubtest.Rule{Method: "Publish", Topic: topic, Message: isNoJSON},
			pubsubtest.Fail(status.Error(codes.InvalidArgument, "Invalid data in message: the topic takes JSON only, as asked by --json-only")))
	}
	return nil
}
