package filter

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the recursion. The service's filters, of 256 bytes, stay below.
const maxDepth = 1000

// What an Error shows for an example.
const (
	exampleHas    = `attributes:event`
	exampleEqual  = `attributes.event = "order"`
	examplePrefix = `hasPrefix(attributes.event, "order.")`
	exampleKey    = `attributes."iana.org/lang" = "en"`
	exampleJoined = `attributes:event AND NOT attributes.region = "eu"`
	exampleGroup  = `(attributes:event OR attributes:order) AND attributes.region = "eu"`
)

// Parse reads an expression. Its error is an *Error. The length is not bounded, as that
// of a subscription's filter is: to 256 bytes.
func Parse(text string) (Expression, error) {
	p := parser{text: text}
	if !utf8.ValidString(text) {
		p.failAt(token{text: "�", at: invalidAt(text)}, "the text must be valid UTF-8", exampleEqual)
		return nil, p.err
	}
	p.next()
	e := p.expression()
	if p.err == nil && p.token.text != "" {
		p.failBehindExpression()
	}
	if p.err != nil {
		return nil, p.err
	}
	return e, nil
}

// invalidAt is the offset of the first byte that is no UTF-8.
func invalidAt(text string) int {
	for i, r := range text {
		if _, n := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && n == 1 {
			return i
		}
	}
	return len(text)
}

// A parser reads by recursive descent. After a fault it goes on without reading, and
// what it returns means nothing.
type parser struct {
	text  string
	read  int   // how much of text has become tokens
	token token // the next one
	depth int
	err   error // the first fault; nil, and no *Error that is nil
}

// fail records that the next token breaks a rule.
func (p *parser) fail(rule, example string) { p.failAt(p.token, rule, example) }

func (p *parser) failAt(t token, rule, example string) {
	if p.err == nil {
		p.err = &Error{Character: character(p.text, t.at), Found: beginning(t.text), Rule: rule, Example: example}
	}
	p.token, p.read = token{at: len(p.text)}, len(p.text)
}

// accept reads a sign if it is the next token.
func (p *parser) accept(sign string) bool {
	if p.err != nil || p.token.text != sign {
		return false
	}
	p.next()
	return true
}

// expression is terms joined by AND, or by OR.
func (p *parser) expression() Expression {
	es := []Expression{p.term()}
	joint := p.token.text
	if joint != "AND" && joint != "OR" {
		return es[0]
	}
	for p.accept(joint) {
		es = append(es, p.term())
	}
	if p.token.text == "AND" || p.token.text == "OR" {
		p.fail("AND beside OR needs parentheses", exampleGroup)
	}
	if joint == "AND" {
		return all(es)
	}
	return oneOf(es)
}

// failBehindExpression records that an expression does not end where it must.
func (p *parser) failBehindExpression() {
	switch {
	case p.token.text == ")":
		p.fail("a parenthesis must be opened before it is closed", exampleGroup)
	case p.isSmall("AND", "OR"):
		p.fail("AND, OR and NOT are written in capitals", exampleJoined)
	default:
		p.fail("AND or OR must stand between comparisons", exampleJoined)
	}
}

// isSmall reports whether the next token is one of these words, in other letters.
func (p *parser) isSmall(words ...string) bool {
	for _, w := range words {
		if strings.EqualFold(p.token.text, w) && p.token.text != w {
			return true
		}
	}
	return false
}

// term is a comparison or an expression in parentheses, either negated or not.
func (p *parser) term() Expression {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		p.fail("parentheses and NOTs must not lie deeper than "+strconv.Itoa(maxDepth), exampleGroup)
		return nil
	}
	switch {
	case p.accept("NOT"), p.accept("-"):
		return not{p.term()}
	case p.accept("("):
		return p.group()
	case p.accept("hasPrefix"):
		return p.prefix()
	case p.accept("attributes"):
		return p.comparison()
	case p.isSmall("NOT"):
		p.fail("AND, OR and NOT are written in capitals", exampleJoined)
	default:
		p.fail("a comparison must begin with attributes or hasPrefix", exampleEqual+" or "+examplePrefix)
	}
	return nil
}

// group is an expression whose parenthesis was read.
func (p *parser) group() Expression {
	e := p.expression()
	switch {
	case p.accept(")"):
	case p.err == nil && p.token.text == "":
		p.fail("a parenthesis must be closed", exampleGroup)
	default:
		p.failBehindExpression()
	}
	return e
}

// prefix is what follows hasPrefix.
func (p *parser) prefix() Expression {
	if !p.accept("(") || !p.accept("attributes") || !p.accept(".") {
		p.fail("hasPrefix takes attributes.KEY and a string", examplePrefix)
	}
	key := p.key()
	if !p.accept(",") {
		p.fail("hasPrefix takes attributes.KEY and a string", examplePrefix)
	}
	e := prefix{key, p.literal(examplePrefix)}
	if !p.accept(")") {
		p.fail("hasPrefix must end with a parenthesis", examplePrefix)
	}
	return e
}

// comparison is what follows attributes.
func (p *parser) comparison() Expression {
	if p.accept(":") {
		return has(p.key())
	}
	if !p.accept(".") {
		p.fail("attributes must be followed by .KEY or :KEY", exampleEqual+" or "+exampleHas)
	}
	key := p.key()
	switch {
	case p.accept("="):
		return equal{key, p.literal(exampleEqual)}
	case p.accept("!="):
		return not{equal{key, p.literal(`attributes.event != "order"`)}}
	}
	p.fail("= or != must follow the key, which is a string in double quotes if it has other characters than letters, digits, _ and -", exampleEqual+" or "+exampleKey)
	return nil
}

// key reads an attribute's key: a word, or a string.
func (p *parser) key() string {
	key := p.token.text
	switch {
	case strings.HasPrefix(key, `"`):
		return p.literal(exampleKey)
	case !isKey(key):
		p.fail("a key must be letters, digits, _ and -, or a string in double quotes", exampleEqual+" or "+exampleKey)
	default:
		p.next()
	}
	return key
}

// literal reads a string.
func (p *parser) literal(example string) string {
	if !strings.HasPrefix(p.token.text, `"`) {
		p.fail("here must be a string in double quotes", example)
		return ""
	}
	s, err := strconv.Unquote(p.token.text)
	switch {
	case err != nil:
		p.fail(`a string has the escapes \", \\, \n, \t, \u00e9, \x41 and \101, and no line end`, `attributes.event = "a \"big\" order"`)
	case !utf8.ValidString(s):
		// No attribute can be that, so it would be a comparison that is never true.
		p.fail("a string must be valid UTF-8 once its escapes are read", `attributes.event = "caf\u00e9"`)
	default:
		p.next()
	}
	return s
}
