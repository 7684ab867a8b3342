package windowcount

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// An instant is a time as counts and reports write it: RFC 3339, and beyond the years 0
// to 9999, which that has no way to write and package json refuses, with a sign and six
// digits for the year, as ISO 8601 has it and JavaScript reads it. An event time may lie
// there, and must not end the run.
type instant struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t instant) MarshalJSON() ([]byte, error) {
	at := t.UTC()
	year := at.Year()
	if year >= 0 && year <= 9999 {
		return json.Marshal(at)
	}
	// The same day of a year of four digits that is a leap year as this one is: the
	// calendar comes again every 400 years.
	like := time.Date(2000+(year%400+400)%400, at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
	return json.Marshal(fmt.Sprintf("%+07d", year) + strings.TrimPrefix(like.Format(time.RFC3339Nano), like.Format("2006")))
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *instant) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if !strings.HasPrefix(s, "+") && !strings.HasPrefix(s, "-") {
		return json.Unmarshal(text, &t.Time)
	}
	var year int
	var rest string
	if _, err := fmt.Sscanf(s, "%7d%s", &year, &rest); err != nil {
		return fmt.Errorf("%.40q is no time: %w", s, err)
	}
	like := 2000 + (year%400+400)%400
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(like)+rest)
	if err != nil {
		return err
	}
	t.Time = at.AddDate(year-like, 0, 0)
	return nil
}
