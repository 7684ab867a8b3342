package publish

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// A requestError says that a publish request was refused, or that its retries
// were used up. It unwraps to the last status, so that status.Code works on it.
type requestError struct {
	text string
	last error
}

func (e *requestError) Error() string { return e.text }

func (e *requestError) Unwrap() error { return e.last }

// refusal makes the error of a request. spent names the bound on retries that
// was reached, if one was.
func (p *pool) refusal(story *trouble, spent string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "publish to %s: %s (%s)", story.topic, transport.Describe(story.last), story.history())
	if spent != "" {
		fmt.Fprintf(&b, "; %s is used up", spent)
	}
	if remedy := p.remedyFor(story.last); remedy != "" {
		fmt.Fprintf(&b, "; %s", remedy)
	}
	return &requestError{text: b.String(), last: story.last}
}

// creationRefusal makes the error of a topic that could not be created.
func (p *pool) creationRefusal(story *trouble) error {
	text := fmt.Sprintf("create %s, which does not exist: %s (%s)", story.topic, transport.Describe(story.last), story.history())
	remedy := transport.Remedy(story.last, iam.CreateTopic)
	if remedy != "" {
		text += "; " + remedy + ", or create the topic"
	}
	return &requestError{text: text, last: story.last}
}

// remedyFor says what mends the status of a publish request, or returns "".
func (p *pool) remedyFor(err error) string {
	if status.Code(err) == codes.NotFound {
		if p.create == nil {
			return "the disposition is options.CreateNever: create the topic, or check its name"
		}
		return "check the topic's name"
	}
	return transport.Remedy(err, iam.Publish)
}
