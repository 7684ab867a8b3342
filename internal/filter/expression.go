package filter

import (
	"strconv"
	"strings"
)

// An Expression lets some messages through. It is immutable: any number of goroutines
// may use one. Parse makes it.
type Expression interface {
	// Matches reports whether a message with these attributes is let through.
	Matches(attributes map[string]string) bool
	// String returns a text that Parse makes the same expression of.
	String() string
}

type (
	not    struct{ of Expression }
	all    []Expression // AND, of two at least
	oneOf  []Expression // OR, of two at least
	has    string       // attributes:key
	equal  struct{ key, value string }
	prefix struct{ key, prefix string }
)

func (e not) Matches(a map[string]string) bool { return !e.of.Matches(a) }

func (e all) Matches(a map[string]string) bool {
	for _, of := range e {
		if !of.Matches(a) {
			return false
		}
	}
	return true
}

func (e oneOf) Matches(a map[string]string) bool {
	for _, of := range e {
		if of.Matches(a) {
			return true
		}
	}
	return false
}

func (e has) Matches(a map[string]string) bool {
	_, ok := a[string(e)]
	return ok
}

func (e equal) Matches(a map[string]string) bool {
	v, ok := a[e.key]
	return ok && v == e.value
}

func (e prefix) Matches(a map[string]string) bool {
	v, ok := a[e.key]
	return ok && strings.HasPrefix(v, e.prefix)
}

func (e not) String() string {
	if of, ok := e.of.(equal); ok {
		return of.written(" != ")
	}
	return "NOT " + operand(e.of)
}

func (e all) String() string   { return joined(e, " AND ") }
func (e oneOf) String() string { return joined(e, " OR ") }
func (e has) String() string   { return "attributes:" + quotedKey(string(e)) }
func (e equal) String() string { return e.written(" = ") }

func (e prefix) String() string {
	return "hasPrefix(attributes." + quotedKey(e.key) + ", " + strconv.Quote(e.prefix) + ")"
}

func (e equal) written(sign string) string {
	return "attributes." + quotedKey(e.key) + sign + strconv.Quote(e.value)
}

func joined(es []Expression, by string) string {
	texts := make([]string, len(es))
	for i, e := range es {
		texts[i] = operand(e)
	}
	return strings.Join(texts, by)
}

// operand is e beside an operator.
func operand(e Expression) string {
	switch e.(type) {
	case all, oneOf:
		return "(" + e.String() + ")"
	}
	return e.String()
}

// quotedKey is a key, in quotes where it needs them.
func quotedKey(key string) string {
	if isKey(key) {
		return key
	}
	return strconv.Quote(key)
}
