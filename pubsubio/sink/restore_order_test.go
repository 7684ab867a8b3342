package sink

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func TestRestoreOrder_KeepsThePlacesOfEachProcess(t *testing.T) {
	k := func(origin, number uint64) keyed { return keyed{Origin: origin, Number: number} }
	messages := []keyed{k(1, 5), k(2, 1), k(1, 3), k(1, 4), k(2, 0)}
	restoreOrder(messages)
	want := []keyed{k(1, 3), k(2, 0), k(1, 4), k(1, 5), k(2, 1)}
	if !slices.Equal(messages, want) {
		t.Errorf("got %v", messages)
	}
}

func TestRestoreOrder_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SliceOf(rapid.Custom(func(t *rapid.T) keyed {
			return keyed{Origin: rapid.Uint64Range(1, 3).Draw(t, "origin"), Number: rapid.Uint64Range(0, 20).Draw(t, "number")}
		})).Draw(t, "messages")
		before := slices.Clone(messages)
		restoreOrder(messages)
		last := map[uint64]uint64{}
		for i, k := range messages {
			if k.Origin != before[i].Origin {
				t.Fatalf("place %d went from process %d to %d", i, before[i].Origin, k.Origin)
			}
			if k.Number < last[k.Origin] {
				t.Fatalf("place %d: number %d after %d", i, k.Number, last[k.Origin])
			}
			last[k.Origin] = k.Number
		}
		compare := func(a, b keyed) int { return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Number, b.Number)) }
		slices.SortFunc(before, compare)
		after := slices.Clone(messages)
		slices.SortFunc(after, compare)
		if !slices.Equal(before, after) {
			t.Fatal("a message is gone")
		}
	})
}

func TestKeyed_SurvivesItsCoding(t *testing.T) {
	k := keyed{
		Topic: topic, At: -12345, Origin: origin, Number: 7,
		Message: &message.Message{Data: []byte("x\xff"), Attributes: map[string]string{"a\xc5": "\xff"}, OrderingKey: "k"},
	}
	got, err := decodeKeyed(encodeKeyed(k))
	if err != nil {
		t.Fatal(err)
	}
	if got.Topic != k.Topic || got.At != k.At || got.Origin != k.Origin || got.Number != k.Number ||
		string(got.Message.Data) != string(k.Message.Data) || got.Message.Attributes["a\xc5"] != "\xff" || got.Message.OrderingKey != "k" {
		t.Errorf("got %+v", got)
	}
}

func FuzzDecodeKeyed(f *testing.F) {
	f.Add(encodeKeyed(keyed{Topic: topic, Message: &message.Message{Data: []byte("x")}}))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = decodeKeyed(b) })
}
