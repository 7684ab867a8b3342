package relay

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// The attributes by which the embedded server's messages are told apart when
// they arrive.
const (
	sequenceAttribute = "sequence"
	checksumAttribute = "checksum"
)

// An orderEvent is what a shop might publish: 250 bytes mostly, some kilobytes now
// and then.
type orderEvent struct {
	OrderID  string      `json:"order_id"`
	Status   string      `json:"status"`
	PlacedAt time.Time   `json:"placed_at"`
	Customer string      `json:"customer"`
	Currency string      `json:"currency"`
	Lines    []orderLine `json:"lines"`
	Cents    int         `json:"total_cents"`
	Note     string      `json:"note,omitempty"`
}

type orderLine struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Cents    int    `json:"unit_cents"`
}

var (
	statuses   = []string{"created", "paid", "packed", "shipped", "returned"}
	regions    = []string{"eu-west", "eu-north", "us-east", "ap-south"}
	currencies = []string{"EUR", "SEK", "USD", "INR"}
	firstOrder = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)
)

// An orderBook writes the same orders whenever it is asked for the same numbers.
// It is for one goroutine.
type orderBook struct {
	source rand.PCG
}

// message is the order of that number, as it is published.
func (b *orderBook) message(sequence int) (*pubsubio.Message, error) {
	b.source.Seed(0x6f7264657273, uint64(sequence))
	r := rand.New(&b.source)
	region := r.IntN(len(regions))
	o := orderEvent{
		OrderID:  fmt.Sprintf("o-%08x-%04x", sequence, r.IntN(1<<16)),
		Status:   statuses[r.IntN(len(statuses))],
		PlacedAt: firstOrder.Add(time.Duration(sequence) * 40 * time.Millisecond),
		Customer: fmt.Sprintf("c-%06d", r.IntN(250_000)),
		Currency: currencies[region],
	}
	lines := 1 + r.IntN(4)
	if r.IntN(100) == 0 {
		lines += r.IntN(60)
	}
	o.Lines = make([]orderLine, lines)
	for i := range o.Lines {
		l := orderLine{SKU: fmt.Sprintf("sku-%05d", r.IntN(40_000)), Quantity: 1 + r.IntN(3), Cents: 99 + r.IntN(20_000)}
		o.Lines[i] = l
		o.Cents += l.Quantity * l.Cents
	}
	if r.IntN(10) == 0 {
		o.Note = strings.Repeat("Please ring twice. ", 1+r.IntN(8))
	}
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	attributes := map[string]string{
		"event":           "order." + o.Status,
		"region":          regions[region],
		"content_type":    "application/json",
		sequenceAttribute: strconv.Itoa(sequence),
	}
	attributes[checksumAttribute] = checksum(data, attributes)
	return &pubsubio.Message{Data: data, Attributes: attributes}, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is of all of a message but the attribute that it becomes: a payload or
// an attribute that is lost, changed, added or another message's shows. Each part
// goes in with its length, so that none can pass for a piece of its neighbour.
func checksum(data []byte, attributes map[string]string) string {
	keys := make([]string, 0, 8)
	for key := range attributes {
		if key != checksumAttribute {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	rest := binary.AppendUvarint(make([]byte, 0, 256), uint64(len(data)))
	for _, key := range keys {
		for _, part := range [...]string{key, attributes[key]} {
			rest = append(binary.AppendUvarint(rest, uint64(len(part))), part...)
		}
	}
	sum := crc32.Update(crc32.Checksum(data, castagnoli), castagnoli, rest)
	return strconv.FormatUint(uint64(sum), 16)
}
