package check

import (
	"fmt"
	"io"
	"strings"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
)

// A printer writes a report for people.
type printer struct {
	w       io.Writer
	account bool // the commands have the account that they grant something to
	member  bool // a command was printed that has not
	topic   bool // a command was printed that lacks a topic
	asked   bool // a permission was asked for
}

func (p *printer) print(r check.Report) {
	if len(r.Settings) > 0 {
		fmt.Fprintln(p.w, "settings")
		p.findings(r.Settings)
		fmt.Fprintln(p.w)
	}
	for _, res := range r.Resources {
		p.resource(res)
		fmt.Fprintln(p.w)
	}
	p.legend()
}

func (p *printer) resource(r check.Resource) {
	fmt.Fprintf(p.w, "%s %s\n", r.Kind, r.Name)
	for _, use := range r.Uses {
		p.row("for", fmt.Sprintf("%s (%s)", use.What, use.Field))
	}
	p.row("state", string(r.State))
	if r.Topic != "" {
		p.row("topic", r.Topic)
	}
	for _, status := range []check.Status{check.Granted, check.Lacking, check.NotKnown} {
		for _, perm := range r.Permissions {
			if perm.Status == status {
				p.permission(r, perm)
			}
		}
	}
	p.findings(r.Findings)
}

func (p *printer) permission(r check.Resource, perm check.Permission) {
	p.asked = p.asked || perm.Status != check.NotKnown
	text := perm.Name
	if perm.On != r.Name {
		text += " on " + perm.On
	}
	text += ", for " + perm.For
	if perm.Status == check.Lacking && perm.Optional {
		text += "; without it there is a warning"
	}
	p.row(string(perm.Status), text)
	if perm.Command != "" {
		p.command(perm.Command)
	}
}

func (p *printer) findings(findings []check.Finding) {
	for _, level := range []check.Level{check.Fault, check.Warning, check.Note} {
		for _, f := range findings {
			if f.Level != level {
				continue
			}
			p.row(string(level), sentence(f))
			for _, c := range f.Commands {
				p.command(c)
			}
		}
	}
}

// sentence is what f says, without the commands, which follow.
func sentence(f check.Finding) string {
	if f.Remedy == "" {
		return f.Text
	}
	remedy := f.Remedy
	for _, c := range f.Commands {
		remedy = strings.ReplaceAll(remedy, " with "+c, "")
	}
	return f.Text + "; " + remedy
}

// The columns of a block.
const (
	margin = 2
	label  = 9
	width  = 100
)

func (p *printer) row(name, text string) {
	wrapped := program.Wrapped(text, width-margin-label, margin+label)
	fmt.Fprintf(p.w, "%*s%-*s%s\n", margin, "", label, name, strings.TrimLeft(wrapped, " "))
}

// command prints a command in one line, however long, so that it can be copied.
func (p *printer) command(c string) {
	p.member = p.member || strings.Contains(c, "=MEMBER ")
	p.topic = p.topic || strings.Contains(c+" ", "=TOPIC ")
	fmt.Fprintf(p.w, "%*s$ %s\n", margin+label+2, "", c)
}

// legend says what stands for something in what was printed.
func (p *printer) legend() {
	if p.asked {
		fmt.Fprintln(p.w, "Permissions are those of the account that check runs as.")
	}
	if p.member && !p.account {
		fmt.Fprintln(p.w, "MEMBER stands for the account that the workers run as; --account=ADDRESS puts it in.")
	}
	if p.topic {
		fmt.Fprintln(p.w, "TOPIC stands for the full name of a topic, projects/<project>/topics/<id>.")
	}
}
