package filter

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A token is a word, a string with its quotes, or a sign; empty at the end.
type token struct {
	text string
	at   int // its offset
}

// next reads a token.
func (p *parser) next() {
	rest := strings.TrimLeftFunc(p.text[p.read:], unicode.IsSpace)
	at, n := len(p.text)-len(rest), 0
	switch {
	case rest == "":
	case rest[0] == '"':
		n = literalLength(rest)
		if n == 0 {
			p.failAt(token{rest, at}, "a string must end with a double quote", exampleEqual)
			return
		}
	case strings.HasPrefix(rest, "!="):
		n = 2
	default:
		n = wordLength(rest)
		if n == 0 || rest[0] == '-' {
			_, n = utf8.DecodeRuneInString(rest)
		}
	}
	p.token, p.read = token{rest[:n], at}, at+n
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
	return len(s) - len(strings.TrimLeftFunc(s, inWord))
}

func inWord(r rune) bool {
	return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// isKey reports whether s is a key without quotes. A minus before a word is a NOT.
func isKey(s string) bool { return s != "" && s[0] != '-' && wordLength(s) == len(s) }
