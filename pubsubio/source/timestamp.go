package source

import (
	"errors"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"
)

// What may be wrong with a timestamp. No text holds the value: it came with a
// message.
var (
	errNoTimestamp       = errors.New("the message does not have it")
	errNotATimestamp     = errors.New("its value is neither an RFC 3339 time, as 2006-01-02T15:04:05.999Z, nor a whole number of milliseconds since the Unix epoch")
	errTimeOutOfRange    = errors.New("the time is outside of Beam's range, which is ±292,000 years about 1970; a number counts milliseconds, not microseconds or nanoseconds")
	errRecordWithoutTime = errors.New("the decoder gave a record no time")
	errRecordOutOfRange  = errors.New("the decoder gave a record a time outside of Beam's range, which is ±292,000 years about 1970")
)

// inBeam reports whether an element can have that time: what is later than the end
// of the global window is in no window.
func inBeam(t time.Time) bool {
	return !t.Before(mtime.MinTimestamp.ToTime()) && !t.After(mtime.EndOfGlobalWindowTime.ToTime())
}

// parseTimestamp reads an event time: milliseconds since the Unix epoch in decimal
// digits, perhaps behind a minus sign, or an RFC 3339 time.
func parseTimestamp(s string) (time.Time, error) {
	t, ok := parseMillis(s)
	if !ok {
		t, ok = parseRFC3339(s)
	}
	switch {
	case !ok:
		return time.Time{}, errNotATimestamp
	case !inBeam(t):
		return time.Time{}, errTimeOutOfRange
	}
	return t, nil
}

// parseMillis reads a number. One that is too large for Beam's time is read as one
// that is out of its range, and no larger.
func parseMillis(s string) (time.Time, bool) {
	digits, minus := strings.CutPrefix(s, "-")
	if digits == "" {
		return time.Time{}, false
	}
	var n int64
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return time.Time{}, false
		}
		n = min(n*10+int64(c-'0'), int64(mtime.MaxTimestamp)+1)
	}
	if minus {
		n = -n
	}
	return time.UnixMilli(n).UTC(), true
}

// looksLikeSeconds reports whether a time that was read from s lies in 1970 because
// s counts in seconds: read as milliseconds, every count of seconds up to the year
// 2969 does.
func looksLikeSeconds(s string, t time.Time) bool {
	if ms := t.UnixMilli(); ms <= 0 || ms >= (365*24*time.Hour).Milliseconds() {
		return false
	}
	_, number := parseMillis(s)
	return number
}

// parseRFC3339 reads a time of RFC 3339, all of its grammar: time.Parse refuses
// lower-case letters and a leap second, and takes a comma for a point. A leap second
// is the second after it, as in Unix time. What is finer than a nanosecond is cut
// off.
func parseRFC3339(s string) (time.Time, bool) {
	p := timeParser{rest: s}
	year := p.number(4, 0, 9999)
	p.letter("-")
	month := p.number(2, 1, 12)
	p.letter("-")
	day := p.number(2, 1, 31)
	p.letter("Tt")
	hour := p.number(2, 0, 23)
	p.letter(":")
	minute := p.number(2, 0, 59)
	p.letter(":")
	second := p.number(2, 0, 60)
	nanos := p.fraction()
	offset := p.offset()
	if p.bad || p.rest != "" || day > daysIn(year, time.Month(month)) {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nanos, time.UTC).Add(-offset)
	if second == 60 && !beginsMonth(t) {
		return time.Time{}, false // Leap seconds end months, in UTC.
	}
	return t, true
}

// beginsMonth reports whether t is in the first second of a month.
func beginsMonth(t time.Time) bool {
	return t.Day() == 1 && t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// A timeParser takes a time apart from its front. Once anything does not fit it is
// bad, and takes nothing more.
type timeParser struct {
	rest string
	bad  bool
}

// letter takes one of these bytes, and returns which.
func (p *timeParser) letter(of string) byte {
	if p.bad || p.rest == "" || strings.IndexByte(of, p.rest[0]) < 0 {
		p.bad = true
		return 0
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	return c
}

// number takes that many digits, which make a number within bounds.
func (p *timeParser) number(digits, least, most int) int {
	if p.bad || len(p.rest) < digits {
		p.bad = true
		return 0
	}
	n := 0
	for i := range digits {
		c := p.rest[i]
		p.bad = p.bad || c < '0' || c > '9'
		n = n*10 + int(c) - '0'
	}
	p.rest = p.rest[digits:]
	p.bad = p.bad || n < least || n > most
	return n
}

// fraction takes the fraction of a second, where there is one, in nanoseconds.
func (p *timeParser) fraction() int {
	digits, ok := strings.CutPrefix(p.rest, ".")
	if !ok || p.bad {
		return 0
	}
	end := 0
	for end < len(digits) && digits[end] >= '0' && digits[end] <= '9' {
		end++
	}
	p.bad = end == 0
	p.rest = digits[end:]
	n := 0
	for i := range 9 {
		n *= 10
		if i < end {
			n += int(digits[i] - '0')
		}
	}
	return n
}

// offset takes the distance from UTC.
func (p *timeParser) offset() time.Duration {
	sign := p.letter("Zz+-")
	if sign == 'Z' || sign == 'z' || p.bad {
		return 0
	}
	hours := p.number(2, 0, 23)
	p.letter(":")
	offset := time.Duration(hours)*time.Hour + time.Duration(p.number(2, 0, 59))*time.Minute
	if sign == '-' {
		return -offset
	}
	return offset
}
