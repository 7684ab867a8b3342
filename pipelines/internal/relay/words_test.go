package relay

import (
	"regexp"
	"strings"
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

// ofGo are names that a user of a program cannot do anything with.
var ofGo = regexp.MustCompile(`\b(options|source|sink|dlq)\.[A-Z]\w*|\b(Resolve|OnFailure|OnDecodeFailure|Splits)\b`)

// The packages below the relay name their own fields: "the disposition is
// options.CreateNever" stood where --create_topics is what to give.
func TestRelay_FailsInTheWordsOfItsFlags(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 1)
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nothing": {nil, program.ExitUsage,
			"must have the form projects/<project>/topics/<id>, unless --output_topic_attribute is given"},
		"a missing topic": {[]string{"--input_subscriptions=" + inSub, "--output_topic=" + outTopic + "-missing", "--stop_when_idle=100ms", "--emulator_endpoint=" + srv.Endpoint()}, program.ExitFailed,
			"; give --create_topics, or create it with gcloud pubsub topics create out-missing"},
		"a missing subscription": {[]string{"--input_subscriptions=" + inSub + "-missing", "--output_topic=" + outTopic, "--stop_when_idle=100ms", "--emulator_endpoint=" + srv.Endpoint()}, program.ExitFailed,
			"; give --create_subscriptions, or create it with gcloud pubsub subscriptions create input-missing"},
		"no order": {[]string{"--input_subscriptions=" + inSub, "--output_topic=" + outTopic, "--ordering", "--stop_when_idle=100ms", "--emulator_endpoint=" + srv.Endpoint()}, program.ExitFailed,
			"without --ordering"},
		"a circle": {[]string{"--input_subscriptions=" + inSub, "--output_topic=" + outTopic, "--dead_letter_topic=" + outTopic}, program.ExitUsage,
			"--dead_letter_topic: \"" + outTopic + "\": must go to another topic than --output_topic"},
	} {
		t.Run(name, func(t *testing.T) {
			o := runRelay(t.Context(), t, tc.args...)
			o.MustEnd(t, tc.code)
			if found := ofGo.FindAllString(o.Stderr, -1); found != nil || !strings.Contains(o.Stderr, tc.want) {
				t.Errorf("%q in:\n%s\nwant %s", found, o.Stderr, tc.want)
			}
		})
	}
}
