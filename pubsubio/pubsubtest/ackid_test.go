package pubsubtest

import (
	"math"
	"testing"
)

func FuzzParseAckID(f *testing.F) {
	for _, seed := range []string{"", ".", "1.2.3.", "1.2.3", "1.2.3...", "zz.zzzzzzzzzzzz.1z141z3.", "1.2.3.x", "a..1.", "-1.2.3."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := parseAckID(s)
		if fromBytes, okBytes := parseAckID([]byte(s)); fromBytes != id || okBytes != ok {
			t.Fatalf("%q: as string %v %v, as bytes %v %v", s, id, ok, fromBytes, okBytes)
		}
		if !ok {
			return
		}
		if again, ok := parseAckID(newAckIDFormat(len(s)).append(nil, id)); !ok || again != id {
			t.Fatalf("%q is %+v, and again %+v, %v", s, id, again, ok)
		}
	})
}

func TestAckID_RoundTrip(t *testing.T) {
	for _, id := range []ackID{{}, {1, 2, 3}, {subscription: 36, seq: 1 << 60, attempt: math.MaxUint32}} {
		for _, least := range []int{0, 10, 220, maxAckIDBytes} {
			text := newAckIDFormat(least).append([]byte("prefix"), id)[len("prefix"):]
			if got, ok := parseAckID(text); !ok || got != id || len(text) < least {
				t.Errorf("%+v at least %d: %q is %+v, %v", id, least, text, got, ok)
			}
		}
	}
}
