package dlq

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// requestSize is how large a request with only m to the topic is.
func requestSize(m *message.Message, topic string) int {
	return proto.Size(&pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{m.PublishProto()}})
}

// entries are the parts of a letter as they are received.
func entries(l Letter) []Entry {
	var out []Entry
	for i, m := range seal(l, testTopic) {
		m.ID = strconv.Itoa(i)
		out = append(out, Decode(m))
	}
	return out
}

// A refused message near the limit of a request had no room for an envelope.
func TestSplit_PartsFitExactly(t *testing.T) {
	l := Letter{Connector: "pubsubio.sink", Destination: elsewhere, Error: strings.Repeat("why ", 300), Time: aTime, Record: []byte{}}
	room := roomFor(testTopic, sealed(t, l).Attributes)
	for _, c := range []struct{ size, parts int }{
		{room - 1, 1}, {room, 1}, {room + 1, 2}, {options.MaxRequestBytes, 2}, {25_000_000, 3},
	} {
		l.Record = bytes.Repeat([]byte("0123456789"), c.size/10+1)[:c.size]
		messages := seal(l, testTopic)
		if len(messages) != c.parts {
			t.Errorf("%d bytes: %d parts, want %d", c.size, len(messages), c.parts)
		}
		for i, m := range messages {
			size := requestSize(m, testTopic)
			if size > options.MaxRequestBytes {
				t.Errorf("%d bytes: part %d makes a request of %d", c.size, i+1, size)
			}
			// What the numbers of the parts could take more is all that is given away.
			if full := i < len(messages)-1 || c.size == room; full && size < options.MaxRequestBytes-20 {
				t.Errorf("%d bytes: part %d makes a request of %d only", c.size, i+1, size)
			}
		}
		if c.parts == 1 {
			continue
		}
		parts := entries(l)
		slices.Reverse(parts)
		whole, err := Join(append(parts, parts[0])...)
		if err != nil {
			t.Errorf("%d bytes: %v", c.size, err)
		}
		if !bytes.Equal(whole.Record, l.Record) || whole.Part != nil || whole.Destination != elsewhere || whole.Hops != 1 {
			t.Errorf("%d bytes: joined %d", c.size, len(whole.Record))
		}
	}
}

// Each part says what it is of, also to whoever has not this package.
func TestSplit_PartsNameEachOther(t *testing.T) {
	m := &message.Message{Data: make([]byte, 11_000_000), Attributes: map[string]string{HopsAttribute: "2", "a\xff": "b"}}
	messages := seal(Letter{Connector: "c", Destination: elsewhere, Error: "why", Time: aTime, Message: m}, testTopic)
	if len(messages) != 2 {
		t.Fatalf("%d parts", len(messages))
	}
	for i, part := range messages {
		want := map[string]string{
			"dlq-connector": "c", "dlq-destination": elsewhere, "dlq-error": "why", "dlq-timestamp": "2026-11-30T12:00:00.005Z",
			"dlq-worker": worker(), "dlq-hops": "3", "dlq-id": messages[0].Attributes[IDAttribute],
			"dlq-part": strconv.Itoa(i+1) + "/2", "dlq-size": strconv.Itoa(len(marshal(m))),
		}
		if diff := cmp.Diff(want, part.Attributes); diff != "" || want["dlq-id"] == "" {
			t.Errorf("part %d (-want +got):\n%s", i+1, diff)
		}
		if e := Decode(part); e.Kind != Envelope || e.Message != nil || e.Part.Number != i+1 || e.Hops != 3 {
			t.Errorf("part %d is %+v", i+1, e.Kind)
		}
	}
	whole, err := Join(Decode(messages[1]), Decode(messages[0]))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.Data, whole.Message.Data) || !maps.Equal(m.Attributes, whole.Message.Attributes) {
		t.Error("joined, it is another message")
	}
}

func TestJoin_SaysWhatIsWrong(t *testing.T) {
	big := Letter{Record: make([]byte, 41_000_000)}
	parts, others := entries(big), entries(big)
	one := parts[0].Part.ID
	damaged := slices.Clone(parts)
	short := *parts[4].Part
	short.Data = short.Data[1:]
	damaged[4].Part = &short
	outside := slices.Clone(parts)
	sixth := *parts[4].Part
	sixth.Number = 6
	outside[4].Part = &sixth
	noMessage := entries(Letter{Message: &message.Message{Data: make([]byte, 10_000_000)}})
	broken := *noMessage[0].Part
	broken.Data = bytes.Repeat([]byte{0xff}, len(broken.Data))
	noMessage[0].Part = &broken
	many := Entry{ID: "x", Part: &Part{ID: "i", Number: 1, Of: 1 << 40}}

	for name, c := range map[string]struct {
		parts []Entry
		want  string
	}{
		"none":         {nil, "dlq: join: no parts"},
		"no part":      {[]Entry{parts[0], {ID: "9"}}, "dlq: join: entry 2 of 2, message 9, is no part of another"},
		"another's":    {[]Entry{parts[0], others[1]}, "dlq: join: entry 2 of 2, message 1, is a part of " + others[0].Part.ID + " in 5 parts, the first is one of " + one + " in 5"},
		"one missing":  {[]Entry{parts[0], parts[1], parts[4], parts[3]}, "dlq: join: of the 5 parts of " + one + ", missing: 3"},
		"some missing": {[]Entry{parts[2]}, "dlq: join: of the 5 parts of " + one + ", missing: 1, 2, 4, 5"},
		"most missing": {[]Entry{many}, "dlq: join: of the 1099511627776 parts of i, missing: 2, 3, 4, 5, 6, and 1099511627770 more"},
		"too short":    {damaged, "dlq: join: the 5 parts of " + one + " have 40999999 bytes, they had 41000000"},
		"no such part": {outside, "dlq: join: entry 5 of 5, message 4, is part 6 of 5"},
		"no message":   {noMessage, "dlq: join: the parts of " + noMessage[0].Part.ID + ": the data is no PubsubMessage in the wire form of protocol buffers"},
	} {
		if _, err := Join(c.parts...); err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
	if len(parts) != 5 {
		t.Errorf("%d parts", len(parts))
	}
}
