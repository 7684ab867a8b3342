package dlq

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A Part is what one message holds of an envelope that was too large for one: the
// service takes 10 MB, and a message that nearly filled them has no room for the
// attributes of an envelope. [Join] makes the whole of all parts.
type Part struct {
	// ID is the same in all parts of one envelope, and in no other.
	ID string

	// Number says which part it is, from 1 to Of, in the order of the bytes.
	Number, Of int

	// Size is how many bytes the parts have together.
	Size int64

	// Data is this part's bytes.
	Data []byte

	// payload is the envelope's PayloadAttribute.
	payload string
}

// split returns envelope as it fits into requests to the topic: as it is, or in
// parts with the same attributes, so that each tells what it is a part of. The parts
// share its data.
func split(envelope *message.Message, topic string) []*message.Message {
	if room := roomFor(topic, envelope.Attributes); len(envelope.Data) <= room {
		return []*message.Message{envelope}
	}
	id, size := uuid.NewString(), strconv.Itoa(len(envelope.Data))
	named := func(number, of int) map[string]string {
		attributes := maps.Clone(envelope.Attributes)
		attributes[IDAttribute], attributes[SizeAttribute] = id, size
		attributes[PartAttribute] = fmt.Sprintf("%d/%d", number, of)
		return attributes
	}
	// The numbers are no longer than that of the bytes.
	room := roomFor(topic, named(len(envelope.Data), len(envelope.Data)))
	of := (len(envelope.Data) + room - 1) / room
	parts := make([]*message.Message, of)
	for i := range parts {
		from := i * room
		parts[i] = &message.Message{Data: envelope.Data[from:min(from+room, len(envelope.Data))], Attributes: named(i+1, of)}
	}
	return parts
}

// roomFor returns how many bytes of data fit beside attributes into the one message
// of a request to a topic.
func roomFor(topic string, attributes map[string]string) int {
	// The lengths of message and data take at most four bytes each, their tags one.
	const framing = 2 * (1 + 4)
	return options.MaxRequestBytes - sizeField(len(topic)) - framing - sizeMessage(&message.Message{Attributes: attributes})
}

// parsePart returns the part that m is, nil where m has no PartAttribute.
func parsePart(m *message.Message) (*Part, error) {
	text, ok := m.Attributes[PartAttribute]
	if !ok {
		return nil, nil
	}
	number, of, _ := strings.Cut(text, "/")
	p := &Part{ID: m.Attributes[IDAttribute], Data: m.Data, payload: m.Attributes[PayloadAttribute]}
	var errs [3]error
	p.Number, errs[0] = strconv.Atoi(number)
	p.Of, errs[1] = strconv.Atoi(of)
	p.Size, errs[2] = strconv.ParseInt(m.Attributes[SizeAttribute], 10, 64)
	if errors.Join(errs[:]...) != nil || p.ID == "" || p.Number < 1 || p.Number > p.Of || p.Size < int64(len(p.Data)) {
		return nil, fmt.Errorf("it is a part, and %s, %s or %s does not say of what", IDAttribute, PartAttribute, SizeAttribute)
	}
	return p, nil
}

// Join returns the entry that was sent in parts: all of them, in any order, each
// once or several times. It is an error where one is missing, where one is no part
// or that of another entry, and where the whole is damaged. What it returns beside
// the payload is what the first of them says.
func Join(parts ...Entry) (Entry, error) {
	byNumber := make(map[int]*Part, len(parts))
	for i, e := range parts {
		switch p := e.Part; {
		case p == nil:
			return Entry{}, fmt.Errorf("dlq: join: entry %d of %d, message %s, is no part of another", i+1, len(parts), e.ID)
		case p.ID != parts[0].Part.ID || p.Of != parts[0].Part.Of || p.Size != parts[0].Part.Size || p.payload != parts[0].Part.payload:
			return Entry{}, fmt.Errorf("dlq: join: entry %d of %d, message %s, is a part of %s in %d parts, the first is one of %s in %d", i+1, len(parts), e.ID, p.ID, p.Of, parts[0].Part.ID, parts[0].Part.Of)
		case p.Number < 1 || p.Number > p.Of:
			return Entry{}, fmt.Errorf("dlq: join: entry %d of %d, message %s, is part %d of %d", i+1, len(parts), e.ID, p.Number, p.Of)
		default:
			byNumber[p.Number] = p
		}
	}
	if len(parts) == 0 {
		return Entry{}, errors.New("dlq: join: no parts")
	}
	whole := parts[0]
	first := whole.Part
	if lacking := missingParts(byNumber, first.Of); lacking != "" {
		return Entry{}, fmt.Errorf("dlq: join: of the %d parts of %s, missing: %s", first.Of, first.ID, lacking)
	}
	var data []byte
	for number := 1; number <= first.Of; number++ {
		data = append(data, byNumber[number].Data...)
	}
	if int64(len(data)) != first.Size {
		return Entry{}, fmt.Errorf("dlq: join: the %d parts of %s have %d bytes, they had %d", first.Of, first.ID, len(data), first.Size)
	}
	whole.Part = nil
	if err := whole.unpack(first.payload, data); err != nil {
		return Entry{}, fmt.Errorf("dlq: join: the parts of %s: %w", first.ID, err)
	}
	return whole, nil
}

// maxNamed is how many numbers an error names.
const maxNamed = 5

// missingParts names the numbers from 1 to of that are not there, some of them if
// they are many; "" if all are.
func missingParts(byNumber map[int]*Part, of int) string {
	n := of - len(byNumber)
	if n == 0 {
		return ""
	}
	var named []string
	for number := 1; len(named) < min(n, maxNamed); number++ {
		if byNumber[number] == nil {
			named = append(named, strconv.Itoa(number))
		}
	}
	if n > maxNamed {
		named = append(named, fmt.Sprintf("and %d more", n-maxNamed))
	}
	return strings.Join(named, ", ")
}
