package source

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseTimestamp(t *testing.T) {
	for s, want := range map[string]string{
		"2024-05-06T07:08:09Z":                "2024-05-06T07:08:09Z",
		"2024-05-06t07:08:09z":                "2024-05-06T07:08:09Z", // time.Parse refuses it
		"2024-05-06T07:08:09.5Z":              "2024-05-06T07:08:09.5Z",
		"2024-05-06T07:08:09.123456789Z":      "2024-05-06T07:08:09.123456789Z",
		"2024-05-06T07:08:09.1234567899999Z":  "2024-05-06T07:08:09.123456789Z",
		"2024-05-06T07:08:09+02:00":           "2024-05-06T05:08:09Z",
		"2024-05-06T07:08:09-23:59":           "2024-05-07T07:07:09Z",
		"2024-05-06T07:08:09-00:00":           "2024-05-06T07:08:09Z",
		"2024-02-29T00:00:00Z":                "2024-02-29T00:00:00Z",
		"2016-12-31T23:59:60Z":                "2017-01-01T00:00:00Z", // a leap second
		"2016-12-31T23:59:60.25z":             "2017-01-01T00:00:00.25Z",
		"2017-01-01T00:59:60+01:00":           "2017-01-01T00:00:00Z",
		"1990-12-31T15:59:60-08:00":           "1991-01-01T00:00:00Z",
		"0000-01-01T00:00:00Z":                "0000-01-01T00:00:00Z",
		"0001-01-01T00:00:00Z":                "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999Z":            "9999-12-31T23:59:59.999Z",
		"1586390400000":                       "2020-04-09T00:00:00Z",
		"1586390400":                          "1970-01-19T08:39:50.4Z", // seconds: taken as it is, and counted
		"0":                                   "1970-01-01T00:00:00Z",
		"-1":                                  "1969-12-31T23:59:59.999Z",
		"0001586390400000":                    "2020-04-09T00:00:00Z",
		"-9223372036854775":                   "", // Beam's least time, which Go cannot print
		"9223371950454775":                    "", // the end of the global window
		"-0":                                  "1970-01-01T00:00:00Z",
		"2024-05-06T07:08:09.000000000000Z":   "2024-05-06T07:08:09Z",
		"2024-05-06T07:08:09.9999999999+0000": "malformed",
	} {
		got, err := parseTimestamp(s)
		switch {
		case want == "malformed":
			if !errors.Is(err, errNotATimestamp) {
				t.Errorf("%s: %v, error %v", s, got, err)
			}
		case err != nil:
			t.Errorf("%s: error %v", s, err)
		case want != "" && got.Format(time.RFC3339Nano) != want:
			t.Errorf("%s: %v, want %s", s, got.Format(time.RFC3339Nano), want)
		}
	}
}

func TestParseTimestamp_Refuses(t *testing.T) {
	for s, want := range map[string]error{
		"":                             errNotATimestamp,
		"-":                            errNotATimestamp,
		"+5":                           errNotATimestamp,
		" 5":                           errNotATimestamp,
		"1.5e12":                       errNotATimestamp,
		"yesterday":                    errNotATimestamp,
		"2024-05-06":                   errNotATimestamp,
		"2024-05-06 07:08:09Z":         errNotATimestamp,
		"2024-05-06T07:08:09":          errNotATimestamp,
		"2024-05-06T07:08:09,5Z":       errNotATimestamp, // time.Parse takes it
		"2024-05-06T07:08:09.Z":        errNotATimestamp,
		"2024-05-06T7:08:09Z":          errNotATimestamp,
		"2024-05-06T24:00:00Z":         errNotATimestamp,
		"2024-05-06T07:60:00Z":         errNotATimestamp,
		"2024-05-06T07:08:61Z":         errNotATimestamp,
		"2024-05-06T07:08:60Z":         errNotATimestamp, // no leap second there
		"2016-12-30T23:59:60Z":         errNotATimestamp,
		"2016-12-31T23:59:60+01:00":    errNotATimestamp,
		"2023-02-29T00:00:00Z":         errNotATimestamp,
		"2024-13-01T00:00:00Z":         errNotATimestamp,
		"2024-00-01T00:00:00Z":         errNotATimestamp,
		"2024-05-00T00:00:00Z":         errNotATimestamp,
		"2024-05-06T07:08:09+24:00":    errNotATimestamp,
		"2024-05-06T07:08:09+02:60":    errNotATimestamp,
		"2024-05-06T07:08:09+0200":     errNotATimestamp,
		"2024-05-06T07:08:09Z ":        errNotATimestamp,
		"２０２４-05-06T07:08:09Z":         errNotATimestamp,
		"1586390400000000000":          errTimeOutOfRange, // nanoseconds
		"9223372036854775808":          errTimeOutOfRange,
		"-9223372036854776":            errTimeOutOfRange,
		"9223371950454776":             errTimeOutOfRange,
		strings.Repeat("9", 1000):      errTimeOutOfRange,
		"-" + strings.Repeat("9", 100): errTimeOutOfRange,
	} {
		if got, err := parseTimestamp(s); !errors.Is(err, want) {
			t.Errorf("%q: %v, error %v, want %v", s, got, err, want)
		}
	}
}

func TestLooksLikeSeconds_C10(t *testing.T) {
	for s, want := range map[string]bool{
		"1586390400":           true,
		"1586390400000":        false,
		"0":                    false,
		"-5":                   false,
		"31536000000":          false, // 1971, or the year 2969 in seconds
		"1970-01-19T08:39:50Z": false, // it says itself what it means
	} {
		at, err := parseTimestamp(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := looksLikeSeconds(s, at); got != want {
			t.Errorf("%s: %v", s, got)
		}
	}
}

// FuzzParseTimestamp holds the parser against the standard library's: they agree on
// all but what RFC 3339 allows and that refuses.
func FuzzParseTimestamp(f *testing.F) {
	for _, s := range []string{"2024-05-06T07:08:09.5+02:00", "2016-12-31t23:59:60z", "1586390400000", "-1", "0000-12-31T23:59:60-00:01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseTimestamp(s)
		if err == nil && !inBeam(got) {
			t.Errorf("%q is %v, out of Beam's range", s, got)
		}
		var theirs time.Time
		if theirs.UnmarshalText([]byte(s)) == nil {
			// It takes more than RFC 3339 allows, such as an hour of one digit or an
			// offset of 24 hours; what it writes is in the form.
			if err == nil && !got.Equal(theirs) {
				t.Errorf("%q is %v, want %v", s, got, theirs)
			}
			theirs = theirs.UTC()
			if theirs.Year() < 0 || theirs.Year() > 9999 {
				return // It cannot be written.
			}
			written := theirs.Format(time.RFC3339Nano)
			if again, err := parseTimestamp(written); err != nil || !again.Equal(theirs) {
				t.Errorf("%q is %v, error %v, want %v", written, again, err, theirs)
			}
			return
		}
		if _, number := parseMillis(s); err != nil || number {
			return
		}
		plain, shift := strings.ToUpper(s), time.Duration(0)
		if plain[17:19] == "60" {
			plain, shift = plain[:17]+"59"+plain[19:], time.Second
		}
		if err := theirs.UnmarshalText([]byte(plain)); err != nil || !got.Equal(theirs.Add(shift)) {
			t.Errorf("%q is %v, want %v, error %v", s, got, theirs.Add(shift), err)
		}
	})
}

func BenchmarkParseTimestamp(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = parseTimestamp("2024-05-06T07:08:09.123+02:00")
	}
}
