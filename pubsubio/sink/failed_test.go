package sink

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fields"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func someFailed() map[string]Failed {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	return map[string]Failed{
		"zero": {},
		// Beam's own coding of a struct would change these.
		"not UTF-8": {
			Message:     &message.Message{Data: []byte{0xff, 0}, Attributes: map[string]string{"a\xc5z": "b\xff"}, OrderingKey: "\xfe"},
			Destination: "\xff", Status: "\xfe", Rule: "\xfd", Error: "a\xc5z",
		},
		"a record":      {Record: []byte{1, 0xff}, Destination: "d", Error: "e", Time: at, EventTime: time.UnixMilli(-1).UTC()},
		"an empty one":  {Record: []byte{}},
		"empty message": {Message: &message.Message{}},
		"rejected":      {Message: &message.Message{ID: "7"}, Code: codes.InvalidArgument, Status: "s", Attempts: 12, Time: at},
		"the epoch":     {Time: time.Unix(0, 0).UTC(), EventTime: time.UnixMilli(-9223372036854775).UTC()},
	}
}

func TestFailed_CoderRoundTrip(t *testing.T) {
	for name, f := range someFailed() {
		got, err := decodeFailed(encodeFailed(f))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The engine takes the coder that is registered.
func TestFailed_IsCodedByItsOwnCoder(t *testing.T) {
	var buf bytes.Buffer
	for _, f := range someFailed() {
		buf.Reset()
		if err := beam.NewElementEncoder(reflect.TypeFor[Failed]()).Encode(f, &buf); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasSuffix(buf.Bytes(), encodeFailed(f)) {
			t.Errorf("coded as %x", buf.Bytes())
		}
	}
}

func TestFailed_DecodeRefusesWhatIsMalformed(t *testing.T) {
	for _, f := range someFailed() {
		whole := encodeFailed(f)
		if _, err := decodeFailed(append(whole, 0xff)); err == nil {
			t.Error("a trailing byte decodes")
		}
		if _, err := decodeFailed(whole[:len(whole)-1]); err == nil {
			t.Error("it decodes without its last byte")
		}
	}
}

// A later form may have more fields.
func TestFailed_DecodeSkipsWhatItDoesNotKnow(t *testing.T) {
	f := someFailed()["rejected"]
	b := fields.AppendNumber(fields.AppendBytes(encodeFailed(f), 100, "new"), 101, 5)
	if got, err := decodeFailed(b); err != nil || !cmp.Equal(f, got) {
		t.Errorf("%+v, error %v", got, err)
	}
}

func FuzzDecodeFailed(f *testing.F) {
	for _, v := range someFailed() {
		f.Add(encodeFailed(v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decodeFailed(b)
		if err != nil {
			return
		}
		if again, err := decodeFailed(encodeFailed(v)); err != nil || !cmp.Equal(v, again) {
			t.Errorf("%+v became %+v, error %v", v, again, err)
		}
	})
}

type order struct {
	ID    int
	Lines []string
}

func TestRecordOf_ReadsTheRecordBack(t *testing.T) {
	f := notEncoded(topic, order{ID: 7, Lines: []string{"a", "b"}}, 0, errors.New("no"))
	whole, err := f.whole()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := RecordOf[order](whole); err != nil || !cmp.Equal(got, order{ID: 7, Lines: []string{"a", "b"}}) {
		t.Errorf("%+v, error %v", got, err)
	}
	if _, err := RecordOf[order](Failed{Message: &message.Message{}}); err == nil || !strings.Contains(err.Error(), "it has the message") {
		t.Errorf("without a record: %v", err)
	}
	if _, err := RecordOf[chan int](whole); err == nil {
		t.Error("a type without a coder was read")
	}
	for _, f := range []Failed{{Record: []byte{}}, {Record: []byte{0xff}}} {
		if _, err := RecordOf[order](f); err == nil {
			t.Errorf("%v was read", f.Record)
		}
	}
}

// What cannot be kept would be lost without a word.
func TestFailure_ARecordWithoutACoderIsAnError(t *testing.T) {
	_, err := notEncoded(topic, make(chan int), 0, errors.New("no such word")).whole()
	if err == nil || !strings.Contains(err.Error(), "no such word; and the record cannot be kept: ") {
		t.Errorf("error %v", err)
	}
}
