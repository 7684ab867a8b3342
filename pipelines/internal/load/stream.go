package load

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

const (
	// MinSize is the least size of a payload: what is in it beside the filler.
	MinSize = 64
	// MaxSize leaves room for the attributes in a request of 10 MB.
	MaxSize = 9_900_000
	// MaxKeys bounds the report, which has a line for each.
	MaxKeys = 100_000
)

// A Stream says what is published: message i of it, counted from 0, is the same
// whenever and wherever it is made.
type Stream struct {
	// Run names the run: it tells its messages from those of others.
	Run string
	// Keys is how many keys take turns, at least 1.
	Keys int
	// MinSize and MaxSize bound the sizes of payloads in bytes, drawn evenly.
	MinSize, MaxSize int
	// Poison is the share of messages whose payload is no JSON, 0 to 1.
	Poison float64
	// Ordered gives each message its key as its ordering key.
	Ordered bool
}

// Key returns the name of key k.
func Key(k int) string { return fmt.Sprintf("key-%04d", k) }

// Place returns the key of message i and its number within the key, from 0.
func (s Stream) Place(i int64) (key int, sequence int64) {
	return int(i % int64(s.Keys)), i / int64(s.Keys)
}

// Index is Place's counterpart.
func (s Stream) Index(key int, sequence int64) int64 { return sequence*int64(s.Keys) + int64(key) }

// Counts returns how many of the first n messages each key has.
func (s Stream) Counts(n int64) map[string]int64 {
	counts := make(map[string]int64, s.Keys)
	for k := range s.Keys {
		// Keys take turns: those before n % Keys have had one turn more.
		turns := n / int64(s.Keys)
		if int64(k) < n%int64(s.Keys) {
			turns++
		}
		if turns > 0 {
			counts[Key(k)] = turns
		}
	}
	return counts
}

// Poisoned reports whether message i is one whose payload is no JSON.
func (s Stream) Poisoned(i int64) bool {
	return s.Poison > 0 && s.draw(i, 1) < s.Poison
}

// Size is how many bytes the payload of message i has.
func (s Stream) Size(i int64) int {
	return s.MinSize + int(s.draw(i, 2)*float64(s.MaxSize-s.MinSize+1))
}

// draw is a number from 0 to below 1 that follows from the run, i and what it is for.
func (s Stream) draw(i int64, purpose uint64) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.Run))
	// The steps of splitmix64: neighbours have nothing in common.
	x := h.Sum64() ^ purpose*0xd1342543de82ef95
	x += (uint64(i) + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}

// Message makes message i, which says that it was sent at that time. Its payload is a
// JSON object, {"key":"key-0003","sequence":17,"filler":"…"}; that of a poisoned one
// has a first byte that neither JSON nor UTF-8 begins with.
func (s Stream) Message(i int64, sent time.Time) *message.Message {
	k, sequence := s.Place(i)
	key, number := Key(k), strconv.FormatInt(sequence, 10)
	m := &message.Message{
		Data: payload(key, number, s.Size(i)),
		Attributes: map[string]string{
			runAttribute:      s.Run,
			keyAttribute:      key,
			sequenceAttribute: number,
			sentAttribute:     strconv.FormatInt(sent.UnixNano(), 10),
		},
	}
	if s.Poisoned(i) {
		m.Data[0] = 0xff
		m.Attributes[poisonAttribute] = "true"
	}
	if s.Ordered {
		m.OrderingKey = key
	}
	return m
}

// filler is what payloads are filled up with: digits, so that the JSON needs no
// escapes and a cut payload shows where it was cut.
const filler = "0123456789"

func payload(key, number string, size int) []byte {
	data := make([]byte, 0, size)
	data = append(data, `{"key":"`...)
	data = append(data, key...)
	data = append(data, `","sequence":`...)
	data = append(data, number...)
	data = append(data, `,"filler":"`...)
	for end := size - len(`"}`); len(data) < end; {
		data = append(data, filler[:min(len(filler), end-len(data))]...)
	}
	return append(data, `"}`...)
}
