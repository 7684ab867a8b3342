package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

func init() {
	beam.RegisterType(reflect.TypeFor[assignment]())
	beam.RegisterType(reflect.TypeFor[restriction]())
	beam.RegisterCoder(reflect.TypeFor[assignment](), encodeAssignment, decodeAssignment)
	beam.RegisterCoder(reflect.TypeFor[restriction](), encodeRestriction, decodeRestriction)
}

// version is the form of an assignment and of a restriction. A build refuses one
// that is newer than itself and reads all older ones: a job may be updated while
// its restrictions live on. A field may be added within a version where a build
// that does not know it does no harm by handing it on.
const version = 1

// An assignment is the element that the splittable DoFn reads: one split of one
// subscription.
type assignment struct {
	Version      int    `json:"v"`
	ReadNonce    string `json:"read"`   // names the Read in this run of the job
	ReaderNonce  string `json:"reader"` // names the reader that serves it
	Subscription string `json:"subscription"`
	Split        int    `json:"split"`
	// MaxDelivery is how often the subscription's dead-letter policy has a message
	// delivered, zero where there is none or nobody may look.
	MaxDelivery int `json:"maxDelivery,omitempty"`

	// unknown is what a newer build has written beside these, as a JSON object; empty
	// for nothing.
	unknown string
}

// A mode says what a restriction still has to do.
type mode int

const (
	reading mode = iota
	// settling reads nothing more and ends once nothing is owed.
	settling
)

// A restriction is what is left of an assignment, and which past it builds on.
type restriction struct {
	Version int `json:"v"`
	// Token is the attempt that this restriction resumes and Parent the one
	// which that resumed; both are empty at the start. See ledger.claim.
	Token  string `json:"token,omitempty"`
	Parent string `json:"parent,omitempty"`
	Mode   mode   `json:"mode,omitempty"`
	// Left is what is left of Limit.MaxMessages where each restriction counts
	// for itself.
	Left int64 `json:"left,omitempty"`
	// Deadline is when Limit.MaxDuration ends the read, in Unix milliseconds;
	// zero for never.
	Deadline int64 `json:"deadline,omitempty"`

	// unknown is as in an assignment. A residual carries it on.
	unknown string
}

func (r restriction) deadline() time.Time {
	if r.Deadline == 0 {
		return time.Time{}
	}
	return time.UnixMilli(r.Deadline)
}

// Coders travel by name, so each type has functions of its own: the instances of
// a generic one share theirs.

func encodeAssignment(a assignment) ([]byte, error) { return encodeVersioned(a, a.unknown) }

func encodeRestriction(r restriction) ([]byte, error) { return encodeVersioned(r, r.unknown) }

func decodeAssignment(b []byte) (assignment, error) {
	var a assignment
	err := decodeVersioned(b, &a, &a.Version, &a.unknown, "assignment")
	return a, err
}

func decodeRestriction(b []byte) (restriction, error) {
	var r restriction
	err := decodeVersioned(b, &r, &r.Version, &r.unknown, "restriction")
	return r, err
}

// encodeVersioned encodes v, a struct, with the fields that this build does not know.
func encodeVersioned(v any, unknown string) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil || unknown == "" {
		return b, err
	}
	return append(append(b[:len(b)-1], ','), unknown[1:]...), nil
}

func decodeVersioned(b []byte, into any, got *int, unknown *string, what string) error {
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("source: decode %s: %w", what, err)
	}
	if *got < 1 || *got > version {
		return fmt.Errorf("source: %s of version %d: this build reads versions 1 to %d; update the workers to the build that wrote it", what, *got, version)
	}
	var err error
	if *unknown, err = unknownFields(b, reflect.TypeOf(into).Elem()); err != nil {
		return fmt.Errorf("source: decode %s: %w", what, err)
	}
	return nil
}

// unknownFields returns those fields of the JSON object b that a struct has not. A
// job that is updated and rolled back gives this build what a newer one has written:
// what it does not know it hands on as it came.
func unknownFields(b []byte, of reflect.Type) (string, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return "", err
	}
	for f := range of.Fields() {
		if !f.IsExported() {
			continue
		}
		known, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return strings.EqualFold(name, known) })
	}
	if len(all) == 0 {
		return "", nil
	}
	rest, err := json.Marshal(all)
	return string(rest), err
}
