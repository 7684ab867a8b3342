package sink

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/google/go-cmp/cmp"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func init() {
	register.Function2x0(wordsWithTimes)
	register.Emitter2[beam.EventTime, string]()
}

// wordsWithTimes emits 20 words at times a second apart, from 1970 on; the sixth is
// one that the encoder refuses, the eleventh one that a rule does.
func wordsWithTimes(_ []byte, emit func(beam.EventTime, string)) {
	for i, w := range wordsAt() {
		emit(beam.EventTime(1000*i), w)
	}
}

func wordsAt() []string {
	words := numbered(20)
	words[5], words[10] = "fail", "attribute"
	return words
}

func TestStamp_AddsAttributesToACopy(t *testing.T) {
	own := map[string]string{"a": "1", "ts": "old"}
	in := &message.Message{ID: "77", Data: []byte("d"), Attributes: own, OrderingKey: "k"}
	got := stamp{Timestamp: "ts", ID: "id"}.on(in, 1234567890123)
	want := &message.Message{ID: "77", Data: []byte("d"), Attributes: map[string]string{"a": "1", "ts": "1234567890123", "id": "77"}, OrderingKey: "k"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stamped (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "ts": "old"}, own); diff != "" {
		t.Errorf("the encoder's attributes (-want +got):\n%s", diff)
	}
}

func TestStamp_NothingIsCopiedWithoutIt(t *testing.T) {
	in := &message.Message{Attributes: map[string]string{"a": "1"}}
	if got := (stamp{}).on(in, 5); got != in {
		t.Error("the message was copied")
	}
}

func TestStamp_TimestampsAtTheEdges(t *testing.T) {
	for at, want := range map[beam.EventTime]string{
		0: "0", -1: "-1", mtime.MinTimestamp: "-9223372036854775", mtime.MaxTimestamp: "9223372036854775", math.MaxInt32 + 1: "2147483648",
	} {
		if got := (stamp{Timestamp: "ts"}).on(&message.Message{}, at).Attributes["ts"]; got != want {
			t.Errorf("%d is written as %s, want %s", int64(at), got, want)
		}
	}
}

// Where the id comes from decides what a consumer that drops duplicates can see.
func TestStamp_IDs(t *testing.T) {
	s := stamp{ID: "id"}
	for name, c := range map[string]struct {
		in   *message.Message
		want string
	}{
		"the encoder's":    {&message.Message{ID: "77", Attributes: map[string]string{"id": "mine"}}, "mine"},
		"the message's":    {&message.Message{ID: "77"}, "77"},
		"not an empty one": {&message.Message{ID: "77", Attributes: map[string]string{"id": ""}}, "77"},
	} {
		if got := s.on(c.in, 0).Attributes["id"]; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	seen := make(map[string]bool)
	for range 1000 {
		id := s.on(&message.Message{}, 0).Attributes["id"]
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) || seen[id] {
			t.Fatalf("id %q, seen before: %v", id, seen[id])
		}
		seen[id] = true
	}
}

func TestWrite_AddsEventTimeAndID(t *testing.T) {
	srv := server(t)
	_, _, err := onPrism(t.Context(), func(s beam.Scope) {
		words := beam.ParDo(s, wordsWithTimes, beam.Impulse(s))
		Write(s, Config{Topic: topic, EmulatorEndpoint: srv.Endpoint(), OnFailure: LogAndDrop(), TimestampAttribute: "ts", IDAttribute: "id"}, encodeWord, words)
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	ids := make(map[string]bool)
	for _, m := range srv.Messages(topic) {
		got = append(got, string(m.Data)+" "+m.Attributes["ts"])
		ids[m.Attributes["id"]] = true
	}
	slices.Sort(got)
	if len(got) != 18 || got[0] != "00000 0" || got[17] != "00019 19000" || len(ids) != 18 || ids[""] {
		t.Errorf("published %s with %d ids", strings.Join(got, ", "), len(ids))
	}
}
