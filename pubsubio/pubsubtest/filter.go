package pubsubtest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxFilter is the longest filter of a subscription, in bytes.
const maxFilter = 256

// A filter is an expression of the service's filter language
// (https://cloud.google.com/pubsub/docs/subscription-message-filter).
type filter interface {
	// matches reports whether a message with these attributes is delivered.
	matches(attributes map[string]string) bool
}

type (
	filterNot    struct{ of filter }
	filterAll    []filter // AND
	filterAny    []filter // OR
	filterHas    string   // attributes:key
	filterEqual  struct{ key, value string }
	filterPrefix struct{ key, prefix string }
)

func (f filterNot) matches(a map[string]string) bool { return !f.of.matches(a) }

func (f filterAll) matches(a map[string]string) bool {
	for _, of := range f {
		if !of.matches(a) {
			return false
		}
	}
	return true
}

func (f filterAny) matches(a map[string]string) bool {
	for _, of := range f {
		if of.matches(a) {
			return true
		}
	}
	return false
}

func (f filterHas) matches(a map[string]string) bool {
	_, ok := a[string(f)]
	return ok
}

func (f filterEqual) matches(a map[string]string) bool {
	v, ok := a[f.key]
	return ok && v == f.value
}

func (f filterPrefix) matches(a map[string]string) bool {
	v, ok := a[f.key]
	return ok && strings.HasPrefix(v, f.prefix)
}

// parseFilter reads an expression; an empty one is no filter. AND and OR do not
// stand beside each other without parentheses.
func parseFilter(text string) (filter, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxFilter {
		return nil, tooMany("filter_bytes", len(text), maxFilter)
	}
	p := filterParser{rest: text}
	p.next()
	f := p.expression()
	if p.err == nil && p.token != "" {
		p.fail("unexpected %q", p.token)
	}
	if p.err != nil {
		return nil, invalid("Invalid filter: %v.", p.err)
	}
	return f, nil
}

// A filterParser reads by recursive descent. After a fault it goes on without
// reading, and its results mean nothing.
type filterParser struct {
	rest  string
	token string // the next one: a word, a literal with its quotes, or a sign
	err   error
}

func (p *filterParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.token, p.rest = "", ""
}

// next reads a token; at the end it is empty.
func (p *filterParser) next() {
	p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
	n := 0
	switch {
	case p.rest == "":
	case p.rest[0] == '"':
		n = literalLength(p.rest)
		if n == 0 {
			p.fail("a string that does not end")
			return
		}
	case strings.HasPrefix(p.rest, "!="):
		n = 2
	default:
		n = wordLength(p.rest)
		if n == 0 || p.rest[0] == '-' {
			_, n = utf8.DecodeRuneInString(p.rest)
		}
	}
	p.token, p.rest = p.rest[:n], p.rest[n:]
}

// literalLength returns the length of the string literal that s begins with, zero
// if it has no end.
func literalLength(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

// wordLength returns the length of the word that s begins with.
func wordLength(s string) int {
	return len(s) - len(strings.TrimLeftFunc(s, inFilterWord))
}

func inFilterWord(r rune) bool {
	return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// expect reads a sign that must be there.
func (p *filterParser) expect(sign string) {
	if p.token != sign {
		p.fail("want %q, got %q", sign, p.token)
		return
	}
	p.next()
}

// expression is terms joined by AND, or by OR.
func (p *filterParser) expression() filter {
	fs := []filter{p.term()}
	joint := p.token
	if joint != "AND" && joint != "OR" {
		return fs[0]
	}
	for p.token == joint {
		p.next()
		fs = append(fs, p.term())
	}
	if p.token == "AND" || p.token == "OR" {
		p.fail("AND beside OR needs parentheses")
	}
	if joint == "AND" {
		return filterAll(fs)
	}
	return filterAny(fs)
}

// term is a comparison or an expression in parentheses, either negated or not.
func (p *filterParser) term() filter {
	switch p.token {
	case "NOT", "-":
		p.next()
		return filterNot{p.term()}
	case "(":
		p.next()
		f := p.expression()
		p.expect(")")
		return f
	case "hasPrefix":
		p.next()
		p.expect("(")
		p.attributes(".")
		key := p.key()
		p.expect(",")
		prefix := p.literal()
		p.expect(")")
		return filterPrefix{key, prefix}
	}
	if p.attributes(":", ".") == ":" {
		return filterHas(p.key())
	}
	key := p.key()
	switch p.token {
	case "=":
		p.next()
		return filterEqual{key, p.literal()}
	case "!=":
		p.next()
		return filterNot{filterEqual{key, p.literal()}}
	}
	p.fail("want = or != after attributes.%s, got %q", key, p.token)
	return nil
}

// attributes reads the word, and the sign that follows it.
func (p *filterParser) attributes(signs ...string) (sign string) {
	p.expect("attributes")
	for _, s := range signs {
		if p.token == s {
			p.next()
			return s
		}
	}
	p.fail("want %s after attributes, got %q", strings.Join(signs, " or "), p.token)
	return ""
}

// key reads an attribute's key: a word, or a string.
func (p *filterParser) key() string {
	if strings.HasPrefix(p.token, `"`) {
		return p.literal()
	}
	key := p.token
	if wordLength(key) == 0 {
		p.fail("want the key of an attribute, got %q", key)
		return ""
	}
	p.next()
	return key
}

func (p *filterParser) literal() string {
	if !strings.HasPrefix(p.token, `"`) {
		p.fail("want a string in quotes, got %q", p.token)
		return ""
	}
	s, err := strconv.Unquote(p.token)
	if err != nil {
		p.fail("the string %s has an escape that means nothing", p.token)
		return ""
	}
	p.next()
	return s
}
