package program

import (
	"context"
	"regexp"
	"strings"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// A Use is what a program's flags ask of Pub/Sub. Each program has a function Use that
// reads it from arguments, for check, which looks at it and runs nothing; the error of
// that joins what could not be read.
type Use struct {
	// Connection says which Pub/Sub, and as whom.
	Connection options.Connection
	// Sources and Sinks are the configurations that the program makes of its flags.
	Sources []source.Config
	Sinks   []sink.Config
	Queues  []dlq.Config // of their own, beside those of policies
	// Words has the names of flags for those of the fields in what is said of the
	// configurations.
	Words *strings.Replacer
	// Complete asks the service for what the flags leave to it, and returns the use that
	// they have then; nil where they leave nothing. Its error says that the service does
	// not answer.
	Complete func(context.Context) (Use, error)
	// Judge says what the program refuses of what was found, beside what keeps any pipeline
	// from running, in the words of the flags; nil refuses nothing more.
	Judge func(check.Report) error
	// Fault joins what is wrong with the flags by themselves, in their words; nil if
	// nothing is.
	Fault error
	// Help is set where the manual was asked for.
	Help bool
}

// Configs are the configurations, as package check takes them.
func (u Use) Configs() check.Configs {
	return check.Configs{Sources: u.Sources, Sinks: u.Sinks, Queues: u.Queues}
}

// secondOf finds the number of a configuration: flags make one of a kind, or several
// whose flags are not the same.
var secondOf = regexp.MustCompile(`\b(source|sink|dlq)\.Config\[\d+\]`)

var numberAtEnd = regexp.MustCompile(`\[\d+\]$`)

// commonWords are those of all programs, whose flags have these names in each of them.
var commonWords = strings.NewReplacer(
	"EmulatorEndpoint and Endpoint", "--emulator_endpoint and --pubsub_endpoint",
	"ServiceAccountKeyFile", "--service_account_key_file",
	"create another subscription with options.SubscriptionCreate.EnableMessageOrdering, or read with options.Unordered", "create another subscription with message ordering, or read without --ordering",
	"Ordering options.PerKey", "--ordering",
	" of OnDecodeFailure", "",
)

// flagWords are for what a program's own Words leave: flags that have one name in all of
// them, and fields that no flag sets, of which a user cannot do what the text says.
var flagWords = strings.NewReplacer(
	"source.Config.EmulatorEndpoint", "--emulator_endpoint",
	"sink.Config.EmulatorEndpoint", "--emulator_endpoint",
	"source.Config.Endpoint", "--pubsub_endpoint",
	"sink.Config.Endpoint", "--pubsub_endpoint",
	"source.Config.ServiceAccountKeyFile", "--service_account_key_file",
	"sink.Config.ServiceAccountKeyFile", "--service_account_key_file",
	"beside EmulatorEndpoint", "beside --emulator_endpoint",
	"options.Limit.MaxMessages", "--max_messages",
	"options.Limit.MaxDuration", "--max_duration",
	"options.Limit.StopWhenIdle", "--stop_when_idle",
	"source.Config.Ordering is options.PerKey", "--ordering is given",
	"or read it with options.Unordered", "or read it without --ordering",
	"dlq.Config.Topic", "--dead_letter_topic",
	"sink.SendTo(dlq.Config) to ", "",
	"another topic than Topic, which", "another topic than --output_topic, which",

	"; use Splits to read it in parallel", "",
	", unless Resolve chooses the topics", "",
	"the disposition is options.CreateNever: ", "",
	"check its name, create it, or set Create in its source.Subscription", "check its name, or create it",
	"; source.Config.OnDecodeFailure may drop, return or emit such messages instead", "",
	", and goes where OnFailure says", "",
	"a read without a Limit needs", "a read without an end needs",
	"; a read with a Limit must be built after flag.Parse, as the flag decides how it reads", "",
	"; options.Subscriber.FirstCommitTimeout sets how long to wait", "",
	"options.Subscriber.ShutdownTimeout is", "the limit is",
	"options.Publisher.PublishProgressTimeout is", "the limit is",
	"options.Publisher.MaxActivePublishers is", "the limit is",
	" (options.Publisher.MaxConsecutiveRejections)", "",
	" (options.Publisher.ShutdownTimeout)", "",
	"options.Publisher.RetryTotalTimeout (", "the time for retries (",
	"options.Publisher.RecoveryMaxAttempts (", "the attempts to publish again (",
	"dlq.Config.FlushTimeout (", "the time for dead letters (",
)

// Say says a text about the configurations in the words of the flags.
func (u Use) Say(text string) string {
	text = secondOf.ReplaceAllString(text, "$1.Config")
	if u.Words != nil {
		text = flagWords.Replace(u.Words.Replace(text))
	}
	return commonWords.Replace(text)
}

// InFlags returns a report in the words of the flags, with what the program itself refuses
// among the faults of its settings.
func (u Use) InFlags(r check.Report) check.Report {
	r.Settings = u.sayAll(r.Settings)
	resources := make([]check.Resource, len(r.Resources))
	for i, res := range r.Resources {
		uses := make([]check.Use, len(res.Uses))
		for j, use := range res.Uses {
			// Which of a flag's names it is, the name itself tells.
			uses[j] = check.Use{Field: numberAtEnd.ReplaceAllString(u.Say(use.Field), ""), What: use.What}
		}
		res.Uses, res.Findings = uses, u.sayAll(res.Findings)
		resources[i] = res
	}
	r.Resources = resources
	if u.Judge != nil {
		for _, text := range Texts(u.Judge(r)) {
			r.Settings = append(r.Settings, check.Finding{Level: check.Fault, Text: text})
		}
	}
	return r
}

// Texts are the texts of what is joined in err, none where it is nil.
func Texts(err error) []string {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{err.Error()}
	}
	var texts []string
	for _, e := range joined.Unwrap() {
		texts = append(texts, e.Error())
	}
	return texts
}

// sayAll returns findings in the words of the flags, each once: flags that make several
// configurations would be at fault in each.
func (u Use) sayAll(findings []check.Finding) []check.Finding {
	var out []check.Finding
	seen := make(map[string]bool)
	for _, f := range findings {
		f.Text, f.Remedy = u.Say(f.Text), u.Say(f.Remedy)
		if !seen[f.Text] {
			seen[f.Text] = true
			out = append(out, f)
		}
	}
	return out
}
