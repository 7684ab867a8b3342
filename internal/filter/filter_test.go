package filter_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/beam-pubsub/beam-pubsub-go/internal/filter"
)

// messages are the attributes of some, by names.
var messages = []struct {
	name       string
	attributes map[string]string
}{
	{"com", map[string]string{"name": "com", "lang": "en"}},
	{"co", map[string]string{"name": "co"}},
	{"org", map[string]string{"name": "org", "iana.org/language_tag": "en"}},
	{"quote", map[string]string{"name": `a"b`}},
	{"none", nil},
}

// matching are the names of the messages that an expression lets through.
func matching(e filter.Expression) string {
	var names []string
	for _, m := range messages {
		if e.Matches(m.attributes) {
			names = append(names, m.name)
		}
	}
	return strings.Join(names, " ")
}

func TestExpression_LetsThrough(t *testing.T) {
	for text, want := range map[string]string{
		`attributes:name`:                                               "com co org quote",
		`NOT attributes:name`:                                           "none",
		`-attributes:name`:                                              "none",
		`NOT NOT attributes:name`:                                       "com co org quote",
		`attributes.name = "com"`:                                       "com",
		`attributes.name="com"`:                                         "com",
		`attributes.name != "com"`:                                      "co org quote none",
		`attributes.name = "a\"b"`:                                      "quote",
		`attributes.name = "\u0063om"`:                                  "com",
		`attributes.name = "\x63\157m"`:                                 "com",
		`hasPrefix(attributes.name, "co")`:                              "com co",
		`hasPrefix(attributes.name, "")`:                                "com co org quote",
		`attributes:"iana.org/language_tag"`:                            "org",
		`attributes."iana.org/language_tag" = "en"`:                     "org",
		`attributes:name AND NOT attributes:lang`:                       "co org quote",
		`attributes.name = "com" OR attributes.name = "org"`:            "com org",
		`(attributes:lang OR attributes.name="co") AND attributes:name`: "com co",
		`NOT (attributes:lang OR hasPrefix(attributes.name, "c"))`:      "org quote none",
		` ( ( attributes:lang ) ) `:                                     "com",
		`NOT attributes:name AND NOT attributes:lang`:                   "none", // NOT binds the closest.
	} {
		t.Run(text, func(t *testing.T) {
			e, err := filter.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := matching(e); got != want {
				t.Errorf("lets through %q, want %q", got, want)
			}
			again, err := filter.Parse(e.String())
			if err != nil || matching(again) != want {
				t.Errorf("written as %s: %v", e, err)
			}
		})
	}
}

func TestExpression_IsWrittenWithWhatItNeeds(t *testing.T) {
	for text, want := range map[string]string{
		` ( attributes:a ) `:                       `attributes:a`,
		`-attributes.a="b"`:                        `attributes.a != "b"`,
		`attributes:"a"`:                           `attributes:a`,
		`attributes."a/b"="c"`:                     `attributes."a/b" = "c"`,
		`attributes:"-a"`:                          `attributes:"-a"`, // A minus is a NOT.
		`NOT(attributes:a AND(attributes:b))`:      `NOT (attributes:a AND attributes:b)`,
		`attributes:a OR(NOT -attributes:b)`:       `attributes:a OR NOT NOT attributes:b`,
		`hasPrefix(attributes.a,"\u00e9\t")`:       `hasPrefix(attributes.a, "é\t")`,
		`attributes:a AND (attributes:b)`:          `attributes:a AND attributes:b`,
		`(attributes:a AND attributes:b)`:          `attributes:a AND attributes:b`,
		`attributes:a OR (-(attributes.b = "\""))`: `attributes:a OR attributes.b != "\""`,
	} {
		e, err := filter.Parse(text)
		if err != nil || e.String() != want {
			t.Errorf("%s is written %v, want %s; %v", text, e, want, err)
		}
	}
}

// Each says where, and what is right; what is right is.
func TestParse_SaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		``:                                          `at its end: a comparison must begin with attributes or hasPrefix`,
		` `:                                         `at its end: a comparison must begin`,
		`x`:                                         `at character 1, x: a comparison must begin with attributes or hasPrefix`,
		`attributes`:                                `at its end: attributes must be followed by .KEY or :KEY`,
		`attributes:`:                               `at its end: a key must be letters`,
		`attributes:-a`:                             `at character 12, -: a key must be letters`,
		`attributes.name`:                           `at its end: = or != must follow the key`,
		`attributes.name =`:                         `at its end: here must be a string in double quotes`,
		`attributes.name = com`:                     `at character 19, com: here must be a string in double quotes, as in attributes.event = "order"`,
		`attributes.name = 'com'`:                   `at character 19, ': here must be a string in double quotes`,
		`attributes.name = "com`:                    `at character 19, "com: a string must end with a double quote`,
		`attributes.name == "com"`:                  `at character 18, =: here must be a string in double quotes`,
		`attributes.name > "com"`:                   `at character 17, >: = or != must follow the key`,
		`attributes.iana.org/lang = "en"`:           `at character 16, .: = or != must follow the key, which is a string in double quotes if it has other`,
		`attributes.name = "\q"`:                    `at character 19, "\q": a string has the escapes`,
		"attributes.name = \"a\nb\"":                "at character 19, \"a\nb\": a string has the escapes",
		`attributes.name = "\xff"`:                  `at character 19, "\xff": a string must be valid UTF-8 once its escapes are read`,
		"attributes.näme = \"\xff\"":                `at character 20, �: the text must be valid UTF-8`,
		`data = "x"`:                                `at character 1, data: a comparison must begin`,
		`hasPrefix(attributes.name)`:                `at character 26, ): hasPrefix takes attributes.KEY and a string, as in hasPrefix(`,
		`hasPrefix(attributes:name, "x")`:           `at character 21, :: hasPrefix takes`,
		`hasPrefix(attributes.name, x)`:             `at character 28, x: here must be a string in double quotes, as in hasPrefix(`,
		`hasPrefix(attributes.name, "x"`:            `at its end: hasPrefix must end with a parenthesis`,
		`hasSuffix(attributes.name, "x")`:           `at character 1, hasSuffix: a comparison must begin`,
		`(attributes:name`:                          `at its end: a parenthesis must be closed`,
		`(attributes:a attributes:b)`:               `at character 15, attributes: AND or OR must stand between comparisons`,
		`attributes:name)`:                          `at character 16, ): a parenthesis must be opened before it is closed`,
		`attributes:name attributes:lang`:           `at character 17, attributes: AND or OR must stand between comparisons`,
		`NOT`:                                       `at its end: a comparison must begin`,
		`not attributes:a`:                          `at character 1, not: AND, OR and NOT are written in capitals`,
		`attributes:name AND`:                       `at its end: a comparison must begin`,
		`attributes:näme and attributes:x`:          `at character 17, and: AND, OR and NOT are written in capitals`,
		`(attributes:a or attributes:b)`:            `at character 15, or: AND, OR and NOT are written in capitals`,
		`attributes:a AND attributes:b OR c`:        `at character 31, OR: AND beside OR needs parentheses, as in (`,
		`(attributes:a) AND ()`:                     `at character 21, ): a comparison must begin`,
		`attributes:a §`:                            `at character 14, §: AND or OR must stand`,
		strings.Repeat("(", 2000):                   `at character 1001, (: parentheses and NOTs must not lie deeper than 1000`,
		strings.Repeat("NOT ", 2000):                `at character 4001, NOT: parentheses and NOTs must not lie deeper than 1000`,
		`attributes.a = ` + strings.Repeat("b", 30): `at character 16, bbbbbbbbbbbbbbbbbbbb…: here must be a string`,
	} {
		_, err := filter.Parse(text)
		var fault *filter.Error
		if !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n%v, want\n%s", text, err, want)
			continue
		}
		for example := range strings.SplitSeq(fault.Example, " or ") {
			if _, err := filter.Parse(example); err != nil {
				t.Errorf("%s: the example %s: %v", text, example, err)
			}
		}
	}
}

// A filter may be longer than a subscription's.
func TestParse_TakesLongOnes(t *testing.T) {
	text := `attributes:a` + strings.Repeat(` OR attributes.a = "b"`, 10_000)
	e, err := filter.Parse(text)
	if err != nil || e.String() != text {
		t.Error(err)
	}
	if _, err := filter.Parse(strings.Repeat("(", 999) + "attributes:a" + strings.Repeat(")", 999)); err != nil {
		t.Error(err)
	}
}

// expressions are texts of all kinds.
func expressions(depth int) *rapid.Generator[string] {
	text := rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9_-]{0,5}`), rapid.String())
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 4
		}
		quote := func(name string) string { return quoted(text.Draw(t, name)) }
		inner := func() string { return "(" + expressions(depth-1).Draw(t, "inner") + ")" }
		switch kind {
		case 0:
			return "attributes:" + quote("key")
		case 1:
			return "attributes." + quote("key") + "=" + quote("value")
		case 2:
			return "attributes." + quote("key") + "!=" + quote("value")
		case 3:
			return "hasPrefix(attributes." + quote("key") + "," + quote("prefix") + ")"
		case 4:
			return "NOT" + inner()
		}
		joint := []string{"AND", "OR"}[kind-5]
		return inner() + joint + inner() + joint + inner()
	})
}

// quoted writes a string with as few escapes as it needs.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// Whatever is read is written so that the same is read again.
func TestExpression_ReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := expressions(3).Draw(t, "text")
		e, err := filter.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		checkStable(t, e)
	})
}

func checkStable(t interface{ Fatalf(string, ...any) }, e filter.Expression) {
	again, err := filter.Parse(e.String())
	if err != nil || !reflect.DeepEqual(e, again) || again.String() != e.String() {
		t.Fatalf("%s is read again as %v: %v", e, again, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		``, `attributes:a`, `-attributes."b c" != "d\"\u00e9"`, `NOT (attributes:a AND hasPrefix(attributes.b, "c")) OR attributes.d="e"`,
		`attributes.name = "com`, "\xff", `((`, `attributes:a AND attributes:b OR attributes:c`, `attributes.\`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := filter.Parse(text)
		if err == nil {
			e.Matches(map[string]string{"a": "b"})
			checkStable(t, e)
			return
		}
		var fault *filter.Error
		if !errors.As(err, &fault) || fault.Character < 1 || fault.Character > len(text)+1 || fault.Rule == "" || fault.Example == "" {
			t.Fatalf("%#v", err)
		}
	})
}

func BenchmarkMatches(b *testing.B) {
	e, err := filter.Parse(`(attributes:lang OR attributes.name="co") AND NOT hasPrefix(attributes.region, "us-")`)
	if err != nil {
		b.Fatal(err)
	}
	a := map[string]string{"name": "co", "region": "eu-west", "event": "order.paid", "sequence": "17"}
	b.ReportAllocs()
	for b.Loop() {
		if !e.Matches(a) {
			b.Fatal("no match")
		}
	}
}
