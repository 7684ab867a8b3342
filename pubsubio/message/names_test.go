package message

import (
	"errors"
	"strings"
	"testing"
)

// C24: names with a colon in the project, or any legal special character in the
// id, were refused by other software.
func TestParse_C24(t *testing.T) {
	long := "a" + strings.Repeat("b", 254)
	for _, s := range []string{
		"projects/ex.com:p/topics/a.b~c%2B+d-e", "projects/p/topics/abc", "projects/p/topics/" + long, "projects/my_p-1/topics/A_1",
	} {
		n, err := ParseTopic(s)
		if err != nil {
			t.Errorf("ParseTopic(%q): %v", s, err)
		} else if n.String() != s {
			t.Errorf("ParseTopic(%q).String() = %q", s, n.String())
		}
	}
	for s, rule := range map[string]string{
		"":                                 "projects/<project>/topics/<id>",
		"abc":                              "projects/<project>/topics/<id>",
		"projects/p/subscriptions/abc":     "projects/<project>/topics/<id>",
		"projects/p/topics/abc/d":          "projects/<project>/topics/<id>",
		"projects//topics/abc":             "the project must be",
		"projects/p q/topics/abc":          "the project must be",
		"projects/p/topics/ab":             "3 to 255",
		"projects/p/topics/" + long + "c":  "3 to 255",
		"projects/p/topics/1ab":            "start with a letter",
		"projects/p/topics/goog1":          "not start with goog",
		"projects/p/topics/GooGle":         "not start with goog",
		"projects/p/topics/a b c":          "only letters, digits",
		"projects/p/topics/a\u00e4\u00e4b": "only letters, digits",
	} {
		if _, err := ParseTopic(s); err == nil || !strings.Contains(err.Error(), rule) {
			t.Errorf("ParseTopic(%q) = %v, want the rule %q", s, err, rule)
		}
	}
	if _, err := ParseSubscription("projects/p/subscriptions/abc"); err != nil {
		t.Error(err)
	}
}

// A rule is shown where a name must not be.
func TestParseTopic_TheRuleHoldsNothingOfTheName(t *testing.T) {
	for _, s := range []string{"secret", "projects/secret!/topics/abc", "projects/p/topics/secret!", "projects/p/topics/goog-secret", "projects/p/topics/" + strings.Repeat("secret", 50)} {
		_, err := ParseTopic(s)
		var fault *NameError
		if !errors.As(err, &fault) || fault.Name != s || fault.Rule == "" || strings.Contains(fault.Rule, "secret") {
			t.Errorf("ParseTopic(%q) = %#v", s, err)
		}
	}
}

func FuzzParseTopic(f *testing.F) {
	f.Add("projects/ex.com:p/topics/a.b~c%2B+d-e")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseTopic(s); err == nil && n.String() != s {
			t.Errorf("ParseTopic(%q) names %q", s, n.String())
		}
	})
}
