package load

import (
	"encoding/json"
	"math"
	"testing"
	"time"
	"unicode/utf8"
)

func TestStream_PlacesAndCountsAgree(t *testing.T) {
	for _, keys := range []int{1, 3, 10} {
		s := Stream{Run: "r", Keys: keys, MinSize: MinSize, MaxSize: MinSize}
		for n := range int64(50) {
			counts := make(map[string]int64)
			for i := range n {
				k, sequence := s.Place(i)
				if sequence != counts[Key(k)] {
					t.Fatalf("%d keys: message %d is number %d of its key, want %d", keys, i, sequence, counts[Key(k)])
				}
				if s.Index(k, sequence) != i {
					t.Fatalf("%d keys: place %d/%d is message %d, want %d", keys, k, sequence, s.Index(k, sequence), i)
				}
				counts[Key(k)]++
			}
			got := s.Counts(n)
			if len(got) != len(counts) {
				t.Fatalf("%d keys, %d messages: %v, want %v", keys, n, got, counts)
			}
			for key, want := range counts {
				if got[key] != want {
					t.Fatalf("%d keys, %d messages: %v, want %v", keys, n, got, counts)
				}
			}
		}
	}
}

func TestStream_MessagesAreTheSameWheneverTheyAreMade(t *testing.T) {
	s := Stream{Run: "r1", Keys: 7, MinSize: 64, MaxSize: 300, Poison: 0.1, Ordered: true}
	sizes := make(map[int]bool)
	for i := range int64(2000) {
		at := time.Unix(1_700_000_000, i)
		m, again := s.Message(i, at), s.Message(i, at.Add(time.Hour))
		if string(m.Data) != string(again.Data) || m.OrderingKey != again.OrderingKey || m.OrderingKey == "" {
			t.Fatalf("message %d: %+v then %+v", i, m, again)
		}
		sizes[len(m.Data)] = true
		if len(m.Data) != s.Size(i) || len(m.Data) < 64 || len(m.Data) > 300 {
			t.Fatalf("message %d has %d bytes, want %d", i, len(m.Data), s.Size(i))
		}
		var v struct {
			Key      string
			Sequence int64
		}
		err := json.Unmarshal(m.Data, &v)
		if bad := err != nil || !utf8.Valid(m.Data); bad != s.Poisoned(i) {
			t.Fatalf("message %d: %q, %v, poison %v", i, m.Data, err, s.Poisoned(i))
		}
		id, ok := Identify(m.Attributes)
		k, sequence := s.Place(i)
		if want := (Identity{Run: "r1", Key: Key(k), Sequence: sequence, Sent: at, Poison: s.Poisoned(i)}); !ok || id != want {
			t.Fatalf("message %d is known as %+v, %v; want %+v", i, id, ok, want)
		}
		if err == nil && (v.Key != id.Key || v.Sequence != sequence) {
			t.Fatalf("message %d holds %s", i, m.Data)
		}
	}
	if len(sizes) < 200 || !sizes[64] || !sizes[300] {
		t.Errorf("%d different sizes, the least %v, the most %v", len(sizes), sizes[64], sizes[300])
	}
}

// A payload has room for the longest key and number.
func TestStream_TheLeastSizeIsEnough(t *testing.T) {
	s := Stream{Run: "r", Keys: MaxKeys, MinSize: MinSize, MaxSize: MinSize}
	for _, i := range []int64{0, MaxKeys - 1, math.MaxInt64} {
		m := s.Message(i, time.Now())
		if len(m.Data) > MinSize || !json.Valid(m.Data) {
			t.Errorf("message %d: %d bytes, %s", i, len(m.Data), m.Data)
		}
	}
}

func TestStream_PoisonIsAShare(t *testing.T) {
	for _, share := range []float64{0, 0.01, 0.5, 1} {
		n := 0
		s := Stream{Run: "r", Keys: 1, Poison: share}
		for i := range int64(100_000) {
			if s.Poisoned(i) {
				n++
			}
		}
		if math.Abs(float64(n)/100_000-share) > 0.005 {
			t.Errorf("%d of 100,000, want a share of %v", n, share)
		}
	}
	one, other := Stream{Run: "a", Poison: 0.5}, Stream{Run: "b", Poison: 0.5}
	alike := 0
	for i := range int64(1000) {
		if one.Poisoned(i) == other.Poisoned(i) {
			alike++
		}
	}
	if alike > 600 {
		t.Errorf("two runs have the same poison in %d of 1,000", alike)
	}
}

func TestIdentify_RefusesWhatIsNoneOfAStream(t *testing.T) {
	whole := Stream{Run: "r", Keys: 1, MinSize: MinSize, MaxSize: MinSize}.Message(0, time.Now()).Attributes
	for _, broken := range []map[string]string{
		nil,
		{"load_run": "r"},
		with(whole, "load_run", ""),
		with(whole, "load_key", ""),
		with(whole, "load_sequence", "x"),
		with(whole, "load_sequence", "-1"),
		with(whole, "load_sent", "yesterday"),
	} {
		if id, ok := Identify(broken); ok {
			t.Errorf("%v is %+v", broken, id)
		}
	}
}

func with(attributes map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range attributes {
		if k != key {
			out[k] = v
		}
	}
	return out
}
