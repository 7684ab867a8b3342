package filter

import (
	"fmt"
	"unicode/utf8"
)

// An Error says where a text is no expression, and why.
type Error struct {
	// Character is where in the text it stands, from 1; behind the last one where
	// something is missing at the end.
	Character int
	// Found is what stands there, a part of it where it is long; empty at the end.
	Found string
	// Rule is the one that the text breaks, and Example an expression that keeps it.
	Rule, Example string
}

func (e *Error) Error() string {
	where := "at its end"
	if e.Found != "" {
		where = fmt.Sprintf("at character %d, %s", e.Character, e.Found)
	}
	return where + ": " + e.Rule + ", as in " + e.Example
}

// longestFound is how many characters of a text an Error quotes.
const longestFound = 20

// beginning is as much of s as an Error quotes.
func beginning(s string) string {
	n := 0
	for i := range s {
		if n == longestFound {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// character is the number of that which stands at an offset.
func character(text string, offset int) int { return utf8.RuneCountInString(text[:offset]) + 1 }
