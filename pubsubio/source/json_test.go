package source

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

type order struct {
	ID     string         `json:"id"`
	Amount int8           `json:"amount"`
	Placed time.Time      `json:"placed"`
	Lines  map[string]int `json:"lines"`
	Quoted int            `json:"quoted,string"`
	Raw    []byte         `json:"raw"`
}

type refund struct {
	ID string `json:"id"`
}

func init() {
	RegisterDecoder(JSON[order])
	RegisterDecoder(JSON[refund])
	RegisterDecoder(JSON[*refund])
	RegisterDecoder(Proto[*wrapperspb.StringValue])
	RegisterDecoder(Proto[*timestamppb.Timestamp])
}

// decoding runs a decoder on data.
func decoding[T any](decode DecodeFunc[T], data string) (records []T, err error) {
	err = decode(&message.Message{Data: []byte(data)}, func(record T) { records = append(records, record) })
	return records, err
}

func TestJSON_Decodes(t *testing.T) {
	got, err := decoding(JSON[order], ` {"id":"o1","amount":3,"placed":"2024-05-06T07:08:09Z","more":true} `)
	if err != nil || len(got) != 1 || got[0].ID != "o1" || got[0].Amount != 3 || got[0].Placed.Year() != 2024 {
		t.Errorf("decoded %+v, error %v", got, err)
	}
}

// encoding/json quotes what it does not like: a character, a number, a whole text.
func TestJSON_ErrorsQuoteNoData(t *testing.T) {
	for data, want := range map[string]string{
		``:                                    "JSON: the data is not valid JSON, from byte 0 on",
		`null`:                                "JSON: the data is null",
		` null`:                               "JSON: the data is null",
		`{"id":"s3cret`:                       "JSON: the data is not valid JSON, from byte 13 on",
		"\x00s3cret":                          "JSON: the data is not valid JSON, from byte 1 on",
		`{"id":"a"} s3cret`:                   "JSON: the data is not valid JSON, from byte 12 on",
		`"s3cret"`:                            "JSON: a string does not fit the Go type source.order, at byte 8",
		`{"amount":73737}`:                    "JSON: a number does not fit the Go type int8 of field amount, at byte 15",
		`{"amount":"s3cret"}`:                 "JSON: a string does not fit the Go type int8 of field amount, at byte 18",
		`{"lines":{"s3cret":"s3cret"}}`:       "JSON: a string does not fit the Go type int of field lines, at byte 27",
		`{"placed":"s3cret"}`:                 "JSON: a type refused its value with a *time.ParseError, whose text may quote it",
		`{"quoted":"s3cret"}`:                 "JSON: a type refused its value with a ",
		`{"raw":"s3cret!"}`:                   "JSON: a type refused its value with a base64.CorruptInputError, whose text may quote it",
		`{"id":"s3cret","id":{"s3cret":true}`: "JSON: the data is not valid JSON, from byte ",
	} {
		records, err := decoding(JSON[order], data)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "73737") {
			t.Errorf("%s: error %v, want %s", data, err, want)
		}
		if len(records) > 0 {
			t.Errorf("%s: emitted %+v", data, records)
		}
	}
}

// No text of the data may come back in an error, whatever the data are.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"amount":73737}`, `{"placed":"2024"}`, `{"lines":{"a":"b"}}`, `[`, `nul`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		const canary = "c4n4ry"
		doc, err := json.Marshal(map[string]any{"id": "x", "placed": canary + data, "quoted": canary, "raw": canary + data, "lines": map[string]string{canary: canary}, "amount": canary})
		if err != nil {
			t.Skip()
		}
		for _, s := range []string{data, string(doc), string(doc[:len(doc)/2])} {
			if _, err := decoding(JSON[order], s); err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("%q: %v", s, err)
			}
		}
	})
}

// The instances of a generic function share its name, so the record tells them apart.
func TestJSON_EachInstanceIsFoundByItsRecord(t *testing.T) {
	of := func(name string, err error) registration {
		t.Helper()
		d, ok := decoders.Find(name)
		if err != nil || !ok {
			t.Fatalf("%s, error %v", name, err)
		}
		return d
	}
	for _, c := range []struct {
		got  registration
		want reflect.Type
	}{
		{of(checkDecoder(Config{}, JSON[order])), reflect.TypeFor[order]()},
		{of(checkDecoder(Config{}, JSON[refund])), reflect.TypeFor[refund]()},
		{of(checkDecoder(Config{}, JSON[*refund])), reflect.TypeFor[*refund]()},
		{of(checkDecoder(Config{}, Proto[*wrapperspb.StringValue])), reflect.TypeFor[*wrapperspb.StringValue]()},
	} {
		if c.got.record != c.want {
			t.Errorf("found the decoder of %v, want %v", c.got.record, c.want)
		}
	}
	if _, err := checkDecoder(Config{}, JSON[map[string]int]); err == nil || !strings.Contains(err.Error(), "is not registered: call source.RegisterDecoder with it in init") {
		t.Errorf("error %v", err)
	}
}

func TestProto_Decodes(t *testing.T) {
	b, err := proto.Marshal(wrapperspb.String("tea"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := decoding(Proto[*wrapperspb.StringValue], string(b))
	if err != nil || len(got) != 1 || got[0].GetValue() != "tea" {
		t.Errorf("decoded %v, error %v", got, err)
	}
	if got, err := decoding(Proto[*wrapperspb.StringValue], ""); err != nil || len(got) != 1 || got[0].GetValue() != "" {
		t.Errorf("nothing is decoded into %v, error %v", got, err)
	}
}

func TestProto_ErrorsQuoteNoData(t *testing.T) {
	for name, data := range map[string]string{
		"truncated":   "\x0a\x20s3cret",
		"not UTF-8":   "\x0a\x08s3cret\xff\xff",
		"no protobuf": "s3cret s3cret",
		"bad tag":     "\x00s3cret",
	} {
		records, err := decoding(Proto[*wrapperspb.StringValue], data)
		if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.HasPrefix(err.Error(), "protocol buffer: ") {
			t.Errorf("%s: error %v", name, err)
		}
		if len(records) > 0 {
			t.Errorf("%s: emitted %v", name, records)
		}
	}
}

func FuzzProto(f *testing.F) {
	f.Add([]byte("\x0a\x06c4n4ry"))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append([]byte("\x0a\x40c4n4ry"), data...)
		if _, err := decoding(Proto[*wrapperspb.StringValue], string(data)); err != nil && strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%q: %v", data, err)
		}
	})
}
