package message

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of a resource id, from "Resource names" in the Pub/Sub documentation
// (https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names).
const (
	minIDLength = 3
	maxIDLength = 255
)

// A Name is the full name of a topic or a subscription.
type Name struct {
	// Project is the project id, as in "my-project" or, in a domain-scoped
	// project, "example.com:my-project".
	Project string
	// ID is the last part of the name.
	ID string

	collection string
}

// String returns the full name, as in projects/p/topics/t.
func (n Name) String() string {
	return "projects/" + n.Project + "/" + n.collection + "/" + n.ID
}

// A NameError says why a text is no name of a topic or of a subscription.
type NameError struct {
	// Kind is what the text should name: "topic" or "subscription".
	Kind string
	// Name is the text.
	Name string
	// Rule is the rule that Name breaks, in words that hold nothing of Name: they
	// may stand where the name itself must not be shown.
	Rule string
}

func (e *NameError) Error() string { return fmt.Sprintf("%s %q: %s", e.Kind, e.Name, e.Rule) }

// ParseTopic reads a topic's full name, projects/<project>/topics/<id>.
//
// The error is a [*NameError], which names the rule that s breaks.
func ParseTopic(s string) (Name, error) { return parseName(s, "topic", "topics") }

// ParseSubscription reads a subscription's full name,
// projects/<project>/subscriptions/<id>.
//
// The error is a [*NameError], which names the rule that s breaks.
func ParseSubscription(s string) (Name, error) {
	return parseName(s, "subscription", "subscriptions")
}

// TopicIn reads the name of a topic as a user may give it: in full, or as its id
// alone, which is then one of the project's. A full name may be of any project.
//
// The error is a [*NameError], which names the rule that the full name breaks.
func TopicIn(project, nameOrID string) (Name, error) {
	return ParseTopic(qualified(project, nameOrID, "topics"))
}

// SubscriptionIn reads the name of a subscription as [TopicIn] reads that of a topic.
func SubscriptionIn(project, nameOrID string) (Name, error) {
	return ParseSubscription(qualified(project, nameOrID, "subscriptions"))
}

// qualified returns a full name as it is and makes one of an id, which has no slash.
func qualified(project, nameOrID, collection string) string {
	if strings.Contains(nameOrID, "/") {
		return nameOrID
	}
	return Name{Project: project, ID: nameOrID, collection: collection}.String()
}

func parseName(s, kind, collection string) (Name, error) {
	fail := func(rule string) (Name, error) {
		return Name{}, &NameError{Kind: kind, Name: s, Rule: rule}
	}
	parts := strings.Split(s, "/")
	if len(parts) != 4 || parts[0] != "projects" || parts[2] != collection {
		return fail("must have the form projects/<project>/" + collection + "/<id>")
	}
	project, id := parts[1], parts[3]
	if project == "" || strings.ContainsFunc(project, notInProject) {
		return fail("the project must be one or more of a-z A-Z 0-9 - . _ :")
	}
	if err := checkID(id); err != nil {
		return fail(err.Error())
	}
	return Name{Project: project, ID: id, collection: collection}, nil
}

// checkID applies the service's rules for the last part of a name.
func checkID(id string) error {
	switch {
	case len(id) < minIDLength || len(id) > maxIDLength:
		return fmt.Errorf("the id must have %d to %d characters, it has %d", minIDLength, maxIDLength, len(id))
	case !isLetter(rune(id[0])):
		return errors.New("the id must start with a letter")
	case strings.HasPrefix(strings.ToLower(id), "goog"):
		return errors.New("the id must not start with goog")
	case strings.ContainsFunc(id, notInID):
		return errors.New("the id must hold only letters, digits and - . _ ~ % +")
	}
	return nil
}

func notInProject(r rune) bool {
	return !isLetter(r) && !isDigit(r) && !strings.ContainsRune("-._:", r)
}

func notInID(r rune) bool {
	return !isLetter(r) && !isDigit(r) && !strings.ContainsRune("-._~%+", r)
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

func isDigit(r rune) bool { return '0' <= r && r <= '9' }
