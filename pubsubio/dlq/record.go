package dlq

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

// RecordOf returns the record of an entry that never became a message. T is the type
// of the elements that were to be written. It is an error where e holds no record,
// and where the record is not one of T.
func RecordOf[T any](e Entry) (record T, err error) {
	if e.Record == nil {
		return record, errors.New("dlq: the entry holds no record: it has the message, is a part, or was empty")
	}
	t := reflect.TypeFor[T]()
	defer func() { // Beam's coders panic where a type has none.
		if r := recover(); r != nil {
			err = fmt.Errorf("dlq: the coder of %v panicked: %v", t, r)
		}
	}()
	v, err := beam.NewElementDecoder(t).Decode(bytes.NewReader(e.Record))
	if err != nil {
		return record, fmt.Errorf("dlq: read the record of a dead letter as %v: %w", t, err)
	}
	record, ok := v.(T)
	if !ok {
		return record, fmt.Errorf("dlq: the record of the dead letter is a %T, not a %v", v, t)
	}
	return record, nil
}
