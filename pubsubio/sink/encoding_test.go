package sink

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

type invoice struct {
	ID      string            `json:"id"`
	Amount  float64           `json:"amount"`
	Secret  secretive         `json:"secret,omitzero"`
	Any     any               `json:"any,omitempty"`
	Labels  map[string]string `json:"-"`
	Account string            `json:"-"`
}

// A secretive value is refused in its own words.
type secretive string

func (s secretive) MarshalJSON() ([]byte, error) { return nil, errors.New("no form for " + string(s)) }

func TestJSON_IsTheRecordAlone(t *testing.T) {
	m, err := JSON(invoice{ID: "a", Amount: 1.5, Account: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&message.Message{Data: []byte(`{"id":"a","amount":1.5}`)}, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// encoding/json quotes a value that it has no form for, and a method whatever it likes:
// an encoder's error goes to logs and dead letters.
func TestJSON_ErrorsQuoteNoData(t *testing.T) {
	type loop struct{ Next any }
	circle := &loop{}
	circle.Next = circle
	for want, encode := range map[string]func() (*message.Message, error){
		"JSON: there is no form for a value of the Go type float64":                           func() (*message.Message, error) { return JSON(invoice{Amount: math.Inf(1)}) },
		"JSON: there is no form for the Go type func()":                                       func() (*message.Message, error) { return JSON(invoice{Any: func() {}}) },
		"JSON: the method of sink.secretive that writes it failed with a *errors.errorString": func() (*message.Message, error) { return JSON(invoice{Secret: "s3cret"}) },
		"JSON: there is no form for a value of the Go type ":                                  func() (*message.Message, error) { return JSON(circle) },
		"JSON: the record is nil":                                                             func() (*message.Message, error) { return JSON((*invoice)(nil)) },
	} {
		m, err := encode()
		if m != nil || err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "Inf") {
			t.Errorf("%v, error %v, want %s", m, err, want)
		}
	}
}

func TestProto_IsTheWireForm(t *testing.T) {
	m, err := Proto(wrapperspb.String("tea"))
	if err != nil {
		t.Fatal(err)
	}
	var got wrapperspb.StringValue
	if err := proto.Unmarshal(m.Data, &got); err != nil || got.GetValue() != "tea" || m.Attributes != nil {
		t.Errorf("%v, error %v", m, err)
	}
	if m, err := Proto((*wrapperspb.StringValue)(nil)); m != nil || err == nil || err.Error() != "protocol buffer: the record is nil" {
		t.Errorf("%v, error %v", m, err)
	}
	if m, err := Proto(wrapperspb.String("s3cret\xff")); m != nil || err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("%v, error %v", m, err)
	}
}

// one is an encoder that returns the same message for every record, as it may.
func one(m *message.Message) EncodeFunc[invoice] {
	return func(invoice) (*message.Message, error) { return m, nil }
}

func labels(i invoice) map[string]string { return i.Labels }

func account(i invoice) string { return i.Account }

func TestWithAttributes_AddsWhatTheRecordHas(t *testing.T) {
	shared := &message.Message{Data: []byte("d"), Attributes: map[string]string{"a": "1", "b": "1"}, OrderingKey: "k"}
	for name, c := range map[string]struct {
		labels, want map[string]string
	}{
		"none":           {nil, map[string]string{"a": "1", "b": "1"}},
		"more":           {map[string]string{"c": "3", "b": "2"}, map[string]string{"a": "1", "b": "2", "c": "3"}},
		"some are empty": {map[string]string{"c": "", "": "4", "a": ""}, map[string]string{"a": "1", "b": "1"}},
	} {
		got, err := WithAttributes(one(shared), labels)(invoice{Labels: c.labels})
		want := &message.Message{Data: []byte("d"), Attributes: c.want, OrderingKey: "k"}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", name, err, diff)
		}
	}
	if len(shared.Attributes) != 2 || shared.Attributes["b"] != "1" {
		t.Errorf("the encoder's own message became %v", shared)
	}
	if got, err := WithAttributes(JSON[invoice], labels)(invoice{ID: "a"}); err != nil || got.Attributes != nil {
		t.Errorf("attributes of a record that has none: %v, error %v", got.Attributes, err)
	}
}

func TestWithOrderingKey_IsTheRecords(t *testing.T) {
	shared := &message.Message{Data: []byte("d"), OrderingKey: "of the encoder"}
	for name, want := range map[string]string{"": "of the encoder", "ada": "ada"} {
		if got, err := WithOrderingKey(one(shared), account)(invoice{Account: name}); err != nil || got.OrderingKey != want {
			t.Errorf("%q: %v, error %v", name, got, err)
		}
	}
	if shared.OrderingKey != "of the encoder" {
		t.Errorf("the encoder's own message became %v", shared)
	}
}

// A record that is skipped or refused has no message to add anything to, and the
// functions that would may count on a record that was taken.
func TestWith_LeavesWhatIsSkippedOrRefused(t *testing.T) {
	refusal := errors.New("refused")
	for name, inner := range map[string]EncodeFunc[invoice]{
		"skipped": one(nil),
		"refused": func(invoice) (*message.Message, error) { return nil, refusal },
		"both":    func(invoice) (*message.Message, error) { return message.New(nil), refusal },
	} {
		never := func(invoice) string { t.Error("asked for a key"); return "" }
		nothing := func(invoice) map[string]string { t.Error("asked for attributes"); return nil }
		for _, encode := range []EncodeFunc[invoice]{WithAttributes(inner, nothing), WithOrderingKey(inner, never)} {
			if m, err := encode(invoice{}); m != nil || (err != nil) != (name != "skipped") || err != nil && !errors.Is(err, refusal) {
				t.Errorf("%s: %v, error %v", name, m, err)
			}
		}
	}
}

// What they return are closures, which no worker finds.
func TestWith_NeedsAFunctionThatHasAName(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "give one declared at package level") {
			t.Errorf("panic %v", r)
		}
	}()
	RegisterEncoder(WithOrderingKey(JSON[invoice], account))
}

// A message of a topic with a schema could not be published again: the service adds to
// it what it refuses from a publisher.
func TestMessage_LeavesOutWhatTheServiceHasAdded(t *testing.T) {
	all := map[string]string{
		"a": "1", "googclient_schemaname": "s", "googclient_schemaencoding": "JSON", "googclient_schemarevisionid": "r",
		"googclient_deliveryattempt": "2", "googclient_traceparent": "00-ab",
	}
	received := &message.Message{ID: "7", Data: []byte("d"), OrderingKey: "k", Attributes: all}
	got, err := Message(received)
	want := &message.Message{ID: "7", Data: []byte("d"), OrderingKey: "k", Attributes: map[string]string{"a": "1", "googclient_traceparent": "00-ab"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if len(received.Attributes) != 6 {
		t.Error("the record was changed")
	}
	// What nobody has received was meant so, and is rejected for it.
	made := &message.Message{Attributes: map[string]string{"googx": "1"}}
	for _, m := range []*message.Message{nil, made, {ID: "7", Attributes: map[string]string{"a": "1"}}} {
		if got, err := Message(m); got != m || err != nil {
			t.Errorf("%v became %v, error %v", m, got, err)
		}
	}
}
