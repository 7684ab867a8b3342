package dlq

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

var aTime = time.Date(2026, 11, 30, 12, 0, 0, 5_000_000, time.UTC)

// sealed is the one message of a letter.
func sealed(t *testing.T, l Letter) *message.Message {
	t.Helper()
	messages := seal(l, testTopic)
	if len(messages) != 1 {
		t.Fatalf("%d messages", len(messages))
	}
	return messages[0]
}

func TestSeal_IsTheEnvelope(t *testing.T) {
	m := &message.Message{ID: "7", Data: []byte("order"), Attributes: map[string]string{"k": "v"}, OrderingKey: "o"}
	got := sealed(t, Letter{Connector: "pubsubio.sink", Destination: elsewhere, Message: m, Error: "no", Attempts: 3, Time: aTime})
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"dlq-connector":   "pubsubio.sink",
		"dlq-destination": elsewhere,
		"dlq-error":       "no",
		"dlq-timestamp":   "2026-11-30T12:00:00.005Z",
		"dlq-worker":      host + "/" + strconv.Itoa(os.Getpid()),
		"dlq-hops":        "1",
	}
	if diff := cmp.Diff(want, got.Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	inside, err := unmarshal(got.Data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, inside); diff != "" || got.OrderingKey != "" {
		t.Errorf("key %q, data (-want +got):\n%s", got.OrderingKey, diff)
	}
}

// A letter without a time of its own has that of its sending.
func TestSeal_ALetterWithoutATime(t *testing.T) {
	before := time.Now()
	e := Decode(sealed(t, Letter{}))
	if e.Time.Before(before.Add(-time.Second)) || e.Time.After(time.Now().Add(time.Second)) {
		t.Errorf("time %v", e.Time)
	}
}

func TestSeal_WhatItHoldsComesBack(t *testing.T) {
	for name, l := range map[string]Letter{
		"message":        {Message: &message.Message{ID: "7", Data: []byte("x"), Attributes: map[string]string{"a\xc5z": "\xff"}, OrderingKey: "k", PublishTime: aTime}},
		"record":         {Record: []byte("record")},
		"empty record":   {Record: []byte{}},
		"nothing at all": {},
	} {
		l.Connector, l.Destination, l.Error, l.Time = "c", elsewhere, "why", aTime
		m := sealed(t, l)
		m.ID = "id"
		want := Entry{Kind: Envelope, ID: "id", Message: l.Message, Record: l.Record, Connector: "c", Destination: elsewhere, Error: "why", Worker: worker(), Time: aTime, Hops: 1}
		if diff := cmp.Diff(want, Decode(m)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// C38: a stack trace of 4 KB made the service refuse the dead letter itself.
func TestCut_C38_ValuesFit(t *testing.T) {
	long := strings.Repeat("x", 1020)
	for name, c := range map[string]struct{ in, want string }{
		"empty":                  {"", ""},
		"fits":                   {strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		"one too many":           {strings.Repeat("x", 1025), strings.Repeat("x", 1021) + "..."},
		"a stack trace":          {strings.Repeat("x", 4096), strings.Repeat("x", 1021) + "..."},
		"in a rune":              {long + "語語語", long + "..."},
		"behind a rune":          {long[2:] + "語語語", long[2:] + "語..."},
		"invalid":                {"a\xc5z", "a\uFFFDz"},
		"grows when it is valid": {strings.Repeat("a\xff", 500), strings.Repeat("a\uFFFD", 255) + "a..."},
		"invalid at the cut":     {strings.Repeat("x", 1019) + "\xe8\xaa\x9e\xe8\xaa", strings.Repeat("x", 1019) + "..."},
	} {
		got := cut(c.in)
		if got != c.want || len(got) > maxValue || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, …%q; want %d bytes, …%q", name, len(got), got[max(0, len(got)-12):], len(c.want), c.want[max(0, len(c.want)-12):])
		}
	}
	long = strings.Repeat("語", 4000)
	for k, v := range sealed(t, Letter{Connector: long, Destination: long, Error: long}).Attributes {
		if len(v) > maxValue || !utf8.ValidString(v) {
			t.Errorf("%s has %d bytes", k, len(v))
		}
	}
}

func TestSeal_CountsHops(t *testing.T) {
	for own, want := range map[string]int{"": 1, "0": 1, "1": 2, "41": 42, "-1": 1, "many": 1, "99999999999999999999": 1, "2147483647": 1<<31 - 1} {
		m := &message.Message{Data: []byte("x")}
		if own != "" {
			m.Attributes = map[string]string{HopsAttribute: own}
		}
		if e := Decode(sealed(t, Letter{Message: m})); e.Hops != want {
			t.Errorf("%q: %d hops, want %d", own, e.Hops, want)
		}
	}
}
