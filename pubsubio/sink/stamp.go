package sink

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"strconv"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A stamp is what the sink adds to each message, as it travels to the workers. The
// zero value adds nothing.
type stamp struct {
	// Timestamp and ID are the keys of Config.TimestampAttribute and
	// Config.IDAttribute.
	Timestamp, ID string
}

// on returns m with the attributes. m and its attributes are the encoder's, which
// may return the same ones for each record: they are not changed.
func (s stamp) on(m *message.Message, at beam.EventTime) *message.Message {
	if s == (stamp{}) {
		return m
	}
	out := *m
	out.Attributes = make(map[string]string, len(m.Attributes)+2)
	maps.Copy(out.Attributes, m.Attributes)
	if s.Timestamp != "" {
		out.Attributes[s.Timestamp] = strconv.FormatInt(at.Milliseconds(), 10)
	}
	if s.ID != "" && out.Attributes[s.ID] == "" {
		out.Attributes[s.ID] = cmp.Or(m.ID, randomID())
	}
	return &out
}

// randomID returns 128 random bits. The generator is seeded by the system for each
// process: no two workers draw the same ones.
func randomID() string {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(b[8:], rand.Uint64())
	return hex.EncodeToString(b[:])
}
