package check

import (
	"errors"
	"fmt"
	"strings"
)

// A Report is what a check has found.
type Report struct {
	// Settings are findings about the configurations by themselves: what Validate says,
	// and what nobody can know before the pipeline runs.
	Settings []Finding `json:"settings,omitempty"`
	// Resources are what the configurations use: what they name in their order, then
	// what a subscription leads to.
	Resources []Resource `json:"resources"`
}

// A Resource is a subscription or a topic, and what was found of it.
type Resource struct {
	// Kind is "subscription" or "topic".
	Kind string `json:"kind"`
	// Name is its full name.
	Name string `json:"name"`
	// Uses say what for.
	Uses []Use `json:"uses"`
	// State says whether it is there.
	State State `json:"state"`
	// Topic is that of a subscription that was found, as the service names it.
	Topic string `json:"topic,omitempty"`
	// MaxDeliveryAttempts is how often a subscription delivers a message before its
	// dead-letter policy forwards it; zero without one.
	MaxDeliveryAttempts int `json:"max_delivery_attempts,omitempty"`
	// Unread is set for a topic that is known to have no subscription, and gets none from
	// the pipeline: what is published to it is lost.
	Unread bool `json:"unread,omitempty"`
	// Permissions are those that the uses need.
	Permissions []Permission `json:"permissions,omitempty"`
	// Findings are the conflicts, and what else there is to say.
	Findings []Finding `json:"findings,omitempty"`
}

// A Use is what a resource is for.
type Use struct {
	// Field is where the configuration names it, as "source.Config.Subscriptions[0]".
	Field string `json:"field"`
	// What is done with it, as "read".
	What string `json:"what"`
}

// A State says whether a resource is there.
type State string

// The states of a resource.
const (
	Exists  State = "exists"
	Missing State = "does not exist"
	// WillBeCreated is missing, and the pipeline creates it.
	WillBeCreated State = "does not exist and will be created"
	// Unseen may not be looked up, and is taken to exist.
	Unseen State = "may not be looked up"
	// Unknown could not be looked up; a finding says why.
	Unknown State = "is not known"
)

// A Permission is one that a use of a resource needs.
type Permission struct {
	// Name is the permission, as "pubsub.topics.publish".
	Name string `json:"name"`
	// On is the full name of what it is needed on: the resource, or its project.
	On string `json:"on"`
	// For says what needs it.
	For string `json:"for"`
	// Role is the smallest predefined role that has it.
	Role string `json:"role"`
	// Optional is set where a pipeline runs without it, and warns.
	Optional bool `json:"optional,omitempty"`
	// Status says whether the account has it.
	Status Status `json:"status"`
	// Command grants it, where it is lacking.
	Command string `json:"command,omitempty"`
}

// A Status says whether an account has a permission.
type Status string

// The statuses of a permission.
const (
	Granted  Status = "granted"
	Lacking  Status = "missing"
	NotKnown Status = "unknown"
)

// A Finding is something to be said of a resource, or of a configuration.
type Finding struct {
	// Level says how bad it is.
	Level Level `json:"level"`
	// Text is what was found: of a resource, the end of a sentence that begins with its
	// name.
	Text string `json:"text"`
	// Remedy says what mends it, in words; empty where there is nothing to mend.
	Remedy string `json:"remedy,omitempty"`
	// Commands mend it, where commands can, one after the other.
	Commands []string `json:"commands,omitempty"`
}

// A Level says how bad a finding is.
type Level string

// The levels of a finding.
const (
	// Fault keeps the pipeline from running.
	Fault Level = "fault"
	// Warning lets it run, and something is lost or not as it was meant.
	Warning Level = "warning"
	// Note is good to know.
	Note Level = "note"
)

// Err joins the faults, those of permissions included; nil where nothing keeps the
// pipeline from running.
func (r Report) Err() error {
	var errs []error
	for _, f := range r.Settings {
		if f.Level == Fault {
			errs = append(errs, errors.New(f.sentence()))
		}
	}
	for _, res := range r.Resources {
		errs = append(errs, res.faults()...)
	}
	return errors.Join(errs...)
}

// Clean reports whether there is nothing to mend: neither fault nor warning.
func (r Report) Clean() bool {
	mends := func(findings []Finding) bool {
		for _, f := range findings {
			if f.Level != Note {
				return true
			}
		}
		return false
	}
	if mends(r.Settings) {
		return false
	}
	for _, res := range r.Resources {
		if mends(res.Findings) || len(res.lacking()) > 0 {
			return false
		}
	}
	return true
}

// lacking are the permissions without which the pipeline does not run.
func (r Resource) lacking() []Permission {
	var out []Permission
	for _, p := range r.Permissions {
		if p.Status == Lacking && !p.Optional {
			out = append(out, p)
		}
	}
	return out
}

// faults says what keeps r from being used.
func (r Resource) faults() []error {
	var errs []error
	add := func(text string) {
		of := " "
		if strings.HasPrefix(text, "its ") {
			of = ": "
		}
		errs = append(errs, fmt.Errorf("%s: %s %s%s%s", r.Uses[0].Field, r.Kind, r.Name, of, text))
	}
	for _, f := range r.Findings {
		if f.Level == Fault {
			add(f.sentence())
		}
	}
	for _, p := range r.lacking() {
		add(fmt.Sprintf("may not be used: the account lacks %s%s; grant %s", p.Name, elsewhere(r, p), p.Role))
	}
	return errs
}

// Says is what there is to say of r in a line, but for findings: whether it is there,
// and which permissions are granted that the pipeline needs.
func (r Resource) Says() string {
	parts := []string{string(r.State)}
	if r.State == Unseen {
		parts[0] = "is taken to exist, as the account may not look" + r.lookedWith()
	}
	for _, p := range r.Permissions {
		switch {
		case p.Optional:
		case p.Status == Granted:
			parts = append(parts, p.Name+elsewhere(r, p)+" is granted")
		case p.Status == NotKnown:
			parts = append(parts, "whether the account has "+p.Name+elsewhere(r, p)+" is not known")
		}
	}
	return strings.Join(parts, "; ")
}

// lookedWith is the permission that looking r up takes, in brackets.
func (r Resource) lookedWith() string {
	for _, p := range r.Permissions {
		if strings.HasSuffix(p.Name, ".get") {
			return " (" + p.Name + ")"
		}
	}
	return ""
}

// elsewhere names what p is needed on, where that is not r.
func elsewhere(r Resource, p Permission) string {
	if p.On == r.Name {
		return ""
	}
	return " on " + p.On
}

func (f Finding) sentence() string {
	if f.Remedy == "" {
		return f.Text
	}
	return f.Text + "; " + f.Remedy
}
