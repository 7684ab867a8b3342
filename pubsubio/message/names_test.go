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

// C24: a subscription was made in the project of its topic, for a name said one and the
// program another.
func TestIn_C24(t *testing.T) {
	long := "a" + strings.Repeat("b", 254)
	for _, c := range []struct{ project, name, want string }{
		{"p", "orders", "projects/p/topics/orders"},
		{"ex.com:p", "a.b~c%2B+d-e", "projects/ex.com:p/topics/a.b~c%2B+d-e"},
		{"p", "projects/ex.com:p/topics/a.b~c%2B+d-e", "projects/ex.com:p/topics/a.b~c%2B+d-e"},
		{"", "projects/q/topics/orders", "projects/q/topics/orders"},
		{"p", long, "projects/p/topics/" + long},
	} {
		if n, err := TopicIn(c.project, c.name); err != nil || n.String() != c.want {
			t.Errorf("TopicIn(%q, %q) = %v, %v, want %s", c.project, c.name, n, err, c.want)
		}
	}
	for _, c := range []struct{ project, name, want string }{
		{"p", "ab", `topic "projects/p/topics/ab": the id must have 3 to 255 characters, it has 2`},
		{"p", "", `topic "projects/p/topics/": the id must have 3 to 255 characters, it has 0`},
		{"p", "goog1", `topic "projects/p/topics/goog1": the id must not start with goog`},
		{"p", "1ab", `topic "projects/p/topics/1ab": the id must start with a letter`},
		{"p", long + "c", `the id must have 3 to 255 characters, it has 256`},
		{"", "orders", `topic "projects//topics/orders": the project must be one or more of`},
		{"p", "topics/orders", `topic "topics/orders": must have the form projects/<project>/topics/<id>`},
		{"p", "projects/p/subscriptions/orders", "must have the form projects/<project>/topics/<id>"},
	} {
		if _, err := TopicIn(c.project, c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("TopicIn(%q, %q): %v, want %s", c.project, c.name, err, c.want)
		}
	}
	if n, err := SubscriptionIn("p", "orders"); err != nil || n.String() != "projects/p/subscriptions/orders" {
		t.Errorf("SubscriptionIn: %v, %v", n, err)
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

func FuzzTopicIn(f *testing.F) {
	f.Add("ex.com:p", "a.b~c%2B+d-e")
	f.Add("p", "projects/q/topics/abc")
	f.Add("p/q", "abc")
	f.Fuzz(func(t *testing.T, project, s string) {
		n, err := TopicIn(project, s)
		if err != nil {
			return
		}
		if again, err := ParseTopic(n.String()); err != nil || again != n {
			t.Errorf("TopicIn(%q, %q) = %v, which is no topic: %v", project, s, n, err)
		}
		if n.String() != s && (n.Project != project || n.ID != s) {
			t.Errorf("TopicIn(%q, %q) names %v", project, s, n)
		}
	})
}
