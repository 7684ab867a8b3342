package dlq

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

var cmpEntry = cmp.AllowUnexported(Part{})

// forwardedBy is what Pub/Sub adds, by its documentation.
func forwardedBy(more map[string]string) map[string]string {
	attributes := map[string]string{
		"CloudPubSubDeadLetterSourceDeliveryCount":       "5",
		"CloudPubSubDeadLetterSourceSubscription":        "orders",
		"CloudPubSubDeadLetterSourceSubscriptionProject": "shop",
		"CloudPubSubDeadLetterSourceTopicPublishTime":    "2026-11-30T12:00:00.005+00:00",
	}
	maps.Copy(attributes, more)
	return attributes
}

func TestDecode_WhatPubSubHasForwarded(t *testing.T) {
	later := aTime.Add(time.Hour)
	for name, c := range map[string]struct {
		more    map[string]string
		without string
		change  func(e *Entry)
	}{
		"as documented":         {change: func(*Entry) {}},
		"with attributes":       {more: map[string]string{"k": "v"}, change: func(e *Entry) { e.Message.Attributes["k"] = "v" }},
		"replayed before":       {more: map[string]string{HopsAttribute: "2"}, change: func(e *Entry) { e.Message.Attributes[HopsAttribute], e.Hops = "2", 3 }},
		"by an export":          {more: map[string]string{"CloudPubSubDeadLetterSourceDeliveryErrorMessage": "no such column"}, change: func(e *Entry) { e.Error = "no such column" }},
		"with a full name":      {more: map[string]string{"CloudPubSubDeadLetterSourceSubscription": "projects/x/subscriptions/y"}, change: func(e *Entry) { e.Destination = "projects/x/subscriptions/y" }},
		"without a project":     {without: "CloudPubSubDeadLetterSourceSubscriptionProject", change: func(e *Entry) { e.Destination = "orders" }},
		"with a time unlike it": {more: map[string]string{"CloudPubSubDeadLetterSourceTopicPublishTime": "noon"}, change: func(e *Entry) { e.Message.PublishTime = later }},
	} {
		attributes := forwardedBy(c.more)
		delete(attributes, c.without)
		m := &message.Message{ID: "9", Data: []byte("x"), OrderingKey: "o", PublishTime: later, Attributes: attributes}
		want := Entry{
			Kind: Forwarded, ID: "9", Time: later, Hops: 1,
			Destination: "projects/shop/subscriptions/orders", Error: "not acknowledged in 5 deliveries",
			Message: &message.Message{ID: "9", Data: []byte("x"), OrderingKey: "o", PublishTime: aTime, Attributes: map[string]string{}},
		}
		c.change(&want)
		if diff := cmp.Diff(want, Decode(m), cmpEntry); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(m.Attributes) != len(attributes) {
			t.Errorf("%s: the message has changed", name)
		}
	}
}

// What cannot be read is handed on whole, and says why.
func TestDecode_ForeignMessagesArriveWhole(t *testing.T) {
	envelope := sealed(t, Letter{Connector: "c", Error: "why", Message: &message.Message{Data: []byte("x")}})
	like := func(data string, more map[string]string) *message.Message {
		attributes := maps.Clone(envelope.Attributes)
		maps.Copy(attributes, more)
		return &message.Message{ID: "3", Data: []byte(data), Attributes: attributes, PublishTime: aTime}
	}
	for name, c := range map[string]struct {
		m    *message.Message
		want string
	}{
		"empty":              {&message.Message{}, ""},
		"of the user's own":  {&message.Message{Data: []byte("x"), Attributes: map[string]string{"dlq-error": "mine"}}, ""},
		"of fields unknown":  {like("x1", nil), "it has the attributes of an envelope: the data has no field of a PubsubMessage"}, // field 15, a number
		"damaged":            {like("\xff", nil), "it has the attributes of an envelope: the data is no PubsubMessage in the wire form of protocol buffers"},
		"of a later version": {like("", map[string]string{PayloadAttribute: "zip"}), `it has the attributes of an envelope: dlq-payload "zip" is none that this version knows`},
		"part of nothing":    {like("", map[string]string{PartAttribute: "1/2"}), "it has the attributes of an envelope: it is a part, and dlq-id, dlq-part or dlq-size does not say of what"},
		"part 3 of 2":        {like("", map[string]string{PartAttribute: "3/2", IDAttribute: "i", SizeAttribute: "9"}), "it has the attributes of an envelope: it is a part, and dlq-id, dlq-part or dlq-size does not say of what"},
		"more than all":      {like("12345", map[string]string{PartAttribute: "1/2", IDAttribute: "i", SizeAttribute: "4"}), "it has the attributes of an envelope: it is a part, and dlq-id, dlq-part or dlq-size does not say of what"},
	} {
		want := Entry{Kind: Foreign, ID: c.m.ID, Message: c.m, Error: c.want, Time: c.m.PublishTime, Hops: hopsOf(c.m)}
		if diff := cmp.Diff(want, Decode(c.m), cmpEntry); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if e := Decode(nil); e.Kind != Foreign || e.Message == nil {
		t.Errorf("nil: %+v", e)
	}
}

// Other connectors write the same five attributes, and no more.
func TestDecode_AnEnvelopeOfAnotherConnector(t *testing.T) {
	attributes := map[string]string{
		ConnectorAttribute: "bigquery", DestinationAttribute: "table", ErrorAttribute: "no column", TimestampAttribute: "2026-11-30T12:00:00Z", WorkerAttribute: "w",
	}
	want := Entry{
		Kind: Envelope, Connector: "bigquery", Destination: "table", Error: "no column", Worker: "w", Hops: 1,
		Time: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Message: &message.Message{Data: []byte("x")},
	}
	m := &message.Message{Data: marshal(want.Message), Attributes: attributes}
	if diff := cmp.Diff(want, Decode(m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	attributes[TimestampAttribute] = "noon"
	if e := Decode(m); e.Kind != Envelope || !e.Time.IsZero() {
		t.Errorf("with an unreadable time: %+v", e)
	}
	// Pub/Sub forwards envelopes that nobody acknowledges, too.
	m.Attributes = forwardedBy(attributes)
	if e := Decode(m); e.Kind != Envelope || e.Connector != "bigquery" {
		t.Errorf("forwarded: %+v", e)
	}
}

// A message with neither data nor attributes came back as one that dlq-hops made
// publishable: each replay sent an empty message to the topic that had refused it.
func TestDecode_AnEmptyMessageIsNone(t *testing.T) {
	ofAnother := sealed(t, Letter{Message: &message.Message{Data: []byte("x")}})
	ofAnother.Data = nil // its serialization failed
	delete(ofAnother.Attributes, HopsAttribute)
	for name, m := range map[string]*message.Message{
		"refused as empty":        sealed(t, Letter{Message: &message.Message{}}),
		"with a key alone":        sealed(t, Letter{Message: &message.Message{OrderingKey: "k", ID: "1", PublishTime: aTime}}),
		"of another connector":    ofAnother,
		"with an empty attribute": sealed(t, Letter{Message: &message.Message{Attributes: map[string]string{"": ""}}}),
	} {
		e := Decode(m)
		if want := name == "with an empty attribute"; e.Kind != Envelope || e.Part != nil || (e.Message != nil) != want || (e.Replay() != nil) != want || e.Countable() != want {
			t.Errorf("%s: %+v, replayed as %v", name, e, e.Replay())
		}
	}
}

func TestEntry_ReplayCountsHopsAndStripsWhatTheServiceKeeps(t *testing.T) {
	hundred := make(map[string]string)
	for i := range 100 {
		hundred[fmt.Sprint(i)] = ""
	}
	counted := maps.Clone(hundred)
	delete(counted, "0")
	counted[HopsAttribute] = "1"
	reserved := maps.Clone(hundred)
	delete(reserved, "0")
	reserved["googclient_schemaname"] = "s"
	tooMany := maps.Clone(hundred)
	tooMany["one more"] = ""
	for name, c := range map[string]struct {
		e        Entry
		own      map[string]string
		wantHops string
		wantLen  int
	}{
		"first":                        {Entry{Hops: 1}, nil, "1", 1},
		"again":                        {Entry{Hops: 8}, map[string]string{HopsAttribute: "7", "k": "v"}, "8", 2},
		"from a service":               {Entry{Hops: 1}, map[string]string{"googclient_schemaname": "s", "k": "v"}, "1", 2},
		"never before":                 {Entry{Kind: Foreign}, map[string]string{"k": "v"}, "", 1},
		"full":                         {Entry{Hops: 2}, hundred, "", 100},
		"too many":                     {Entry{Hops: 1}, tooMany, "", 101}, // for which it was refused
		"full, counted":                {Entry{Hops: 2}, counted, "2", 100},
		"full by one of the service's": {Entry{Hops: 1}, reserved, "1", 100},
	} {
		before := maps.Clone(c.own)
		c.e.Message = &message.Message{Data: []byte("x"), OrderingKey: "o", Attributes: c.own}
		got := c.e.Replay()
		if got.Attributes[HopsAttribute] != c.wantHops || len(got.Attributes) != c.wantLen || string(got.Data) != "x" || got.OrderingKey != "o" {
			t.Errorf("%s: %d attributes, hops %q", name, len(got.Attributes), got.Attributes[HopsAttribute])
		}
		if want := c.wantHops != "" || c.e.Hops == 0; c.e.Countable() != want {
			t.Errorf("%s: countable is %v", name, !want)
		}
		if !maps.Equal(before, c.own) {
			t.Errorf("%s: the entry's message has changed", name)
		}
	}
	for name, e := range map[string]Entry{
		"a record":                     {Record: []byte("r"), Hops: 1},
		"what the service keeps alone": {Message: &message.Message{Attributes: map[string]string{"googclient_schemaname": "s"}, OrderingKey: "k"}, Hops: 1},
	} {
		if m := e.Replay(); m != nil || e.Countable() {
			t.Errorf("%s is replayed as %v, countable is %v", name, m, e.Countable())
		}
	}
}

func TestRecordOf_ReadsTheRecord(t *testing.T) {
	var b bytes.Buffer
	if err := beam.NewElementEncoder(reflect.TypeFor[misfit]()).Encode(misfit{"word"}, &b); err != nil {
		t.Fatal(err)
	}
	e := Decode(sealed(t, Letter{Record: b.Bytes()}))
	if got, err := RecordOf[misfit](e); err != nil || got != (misfit{"word"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := RecordOf[misfit](Entry{Message: &message.Message{}}); err == nil || !strings.Contains(err.Error(), "holds no record") {
		t.Errorf("error %v", err)
	}
	if _, err := RecordOf[misfit](Entry{Record: []byte{0xff}}); err == nil || !strings.HasPrefix(err.Error(), "dlq: ") {
		t.Errorf("error %v", err)
	}
	if _, err := RecordOf[chan int](e); err == nil || !strings.HasPrefix(err.Error(), "dlq: ") {
		t.Errorf("error %v", err)
	}
}

// An entry goes through shuffles; nothing of it may change there.
func TestEntryCoder_LosesNothing(t *testing.T) {
	for name, e := range map[string]Entry{
		"zero":   {},
		"all":    {Kind: Forwarded, ID: "i\xff", Message: &message.Message{Data: []byte("d"), Attributes: map[string]string{"a\xff": "b"}}, Connector: "c\xff", Destination: "d\xff", Error: "e\xff", Worker: "w\xff", Time: aTime, Hops: 3},
		"record": {Record: []byte{}, Hops: -1},
		"part":   {Part: &Part{ID: "i", Number: 1, Of: 2, Size: 1 << 40, Data: []byte("d"), payload: "record"}},
		"empty":  {Part: &Part{ID: ""}, Message: &message.Message{}},
	} {
		b := encodeEntry(e)
		got, err := decodeEntry(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(e, got, cmpEntry); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for n := range b {
			_, _ = decodeEntry(b[:n]) // a panic ends the test
		}
	}
	if _, err := decodeEntry([]byte{0xff}); err == nil {
		t.Error("what is no entry is read")
	}
}

// Whatever is in a dead-letter topic is read, and survives a shuffle.
func FuzzDecode(f *testing.F) {
	add := func(m *message.Message) {
		f.Add(m.Data, m.Attributes[ConnectorAttribute], m.Attributes[PayloadAttribute], m.Attributes[PartAttribute], m.Attributes[SizeAttribute], m.Attributes[HopsAttribute], true)
	}
	for _, l := range []Letter{{Record: []byte("r")}, {}, {Message: &message.Message{Data: []byte("x"), Attributes: map[string]string{"k": "v"}, PublishTime: aTime}}} {
		for _, m := range seal(l, testTopic) {
			add(m)
		}
	}
	f.Add([]byte("part"), "c", "record", "1/2", "100", "1", true)
	f.Add([]byte("x1"), "c", "", "", "", "", true)
	f.Add([]byte{0x22, 0x01, 0x08}, "c", "", "", "", "", true)
	f.Add([]byte("x"), "", "", "", "", "", false)
	f.Fuzz(func(t *testing.T, data []byte, connector, payload, part, size, hops string, whole bool) {
		attributes := map[string]string{ConnectorAttribute: connector, DestinationAttribute: "d", ErrorAttribute: "e", WorkerAttribute: "w", HopsAttribute: hops}
		if whole {
			attributes[TimestampAttribute] = "2026-11-30T12:00:00Z"
		}
		if payload != "" {
			attributes[PayloadAttribute] = payload
		}
		if part != "" {
			attributes[PartAttribute], attributes[SizeAttribute], attributes[IDAttribute] = part, size, "i"
		}
		m := &message.Message{ID: "1", Data: data, Attributes: attributes}
		e := Decode(m)
		back, err := decodeEntry(encodeEntry(e))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, back, cmpEntry, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("through a shuffle (-want +got):\n%s", diff)
		}
		if e.Kind == Foreign && e.Message != m {
			t.Error("a foreign message is not whole")
		}
		if again := e.Replay(); again != nil && empty(e.Message) {
			t.Errorf("an empty message is replayed as %v", again)
		}
		if e.Part != nil {
			_, _ = Join(e)
			return
		}
		if e.Kind != Envelope {
			return
		}
		again := Decode(seal(Letter{Connector: e.Connector, Destination: e.Destination, Error: e.Error, Message: e.Message, Record: e.Record, Time: e.Time}, testTopic)[0])
		if diff := cmp.Diff(e.Message, again.Message, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("sealed again (-want +got):\n%s", diff)
		}
	})
}
