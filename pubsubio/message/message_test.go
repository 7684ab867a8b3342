package message

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMessage_CoderRoundTrip(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	for name, m := range map[string]*Message{
		"zero": {},
		"nil":  nil, // made encode panic, deep in the engine
		// C30: invalid UTF-8 must reach a failures output as it is.
		"not UTF-8": {Attributes: map[string]string{"a\xc5z": "b\xff"}, OrderingKey: "\xfe"},
		"no data":   {Attributes: map[string]string{"a": ""}},
		"whole":     {ID: "7", Data: []byte{0xff, 0}, Attributes: map[string]string{"a": "b", "": "x"}, OrderingKey: "k", PublishTime: at, DeliveryAttempt: 3},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Unmarshal(Marshal(m))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m, got); diff != "" {
				t.Errorf("round trip (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessage_DecodeRefusesWhatIsMalformed(t *testing.T) {
	whole := Marshal(&Message{ID: "7", Data: []byte("d"), Attributes: map[string]string{"a": "b"}, PublishTime: time.Unix(1, 2)})
	for n := range whole {
		if _, err := Unmarshal(whole[:n]); err == nil {
			t.Errorf("the first %d of %d bytes decode", n, len(whole))
		}
	}
	if _, err := Unmarshal(append(whole, 0)); err == nil {
		t.Error("trailing bytes decode")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Marshal(&Message{ID: "1", Data: []byte("x"), DeliveryAttempt: 2, PublishTime: time.Unix(1, 2)}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Unmarshal(b)
		if err != nil {
			return
		}
		if again, err := Unmarshal(Marshal(m)); err != nil || !cmp.Equal(m, again) {
			t.Errorf("%+v became %+v, error %v", m, again, err)
		}
	})
}

func TestRepublishable_StripsWhatTheServiceWouldRefuse(t *testing.T) {
	in := &Message{ID: "1", Data: []byte("d"), OrderingKey: "k", DeliveryAttempt: 4, Attributes: map[string]string{
		"a": "1", "googclient_deliveryattempt": "4", "GOOGle": "x", "googclient_traceparent": "00-ab", "goo": "y",
	}}
	want := &Message{Data: []byte("d"), OrderingKey: "k", Attributes: map[string]string{"a": "1", "googclient_traceparent": "00-ab", "goo": "y"}}
	if diff := cmp.Diff(want, in.Republishable()); diff != "" {
		t.Errorf("Republishable (-want +got):\n%s", diff)
	}
	if len(in.Attributes) != 5 {
		t.Error("Republishable changed its receiver")
	}
}
