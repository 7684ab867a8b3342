package windowcount

import (
	"errors"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// What --bad_timestamp says.
const (
	badFail        = "fail"
	badDrop        = "drop"
	badPublishTime = "publish_time"
)

// onBadTimestamp is the policy of the source, to which a message without a usable event
// time is one that it cannot decode. It refuses no other: every message is one.
func (s settings) onBadTimestamp() source.FailurePolicy {
	switch s.badTimestamp {
	case badDrop:
		return source.Drop()
	case badPublishTime:
		return source.EmitFailed()
	}
	return source.Fail()
}

func (s settings) badTimestampFaults(f *options.Faults) {
	switch s.badTimestamp {
	case badFail:
	case badDrop, badPublishTime:
		if s.timestampAttribute == "" {
			f.Add("--bad_timestamp", s.badTimestamp, "must have --timestamp_attribute beside it: every message has a publish time")
		}
	default:
		f.Add("--bad_timestamp", s.badTimestamp, "must be fail, drop or publish_time")
	}
}

// read adds the read of the messages that are to be counted. A failure that is emitted
// has the publish time for its own.
func read(scope beam.Scope, s settings) (beam.PCollection, error) {
	if s.badTimestamp != badPublishTime {
		return source.TryRead(scope, sourceConfig(s), source.Message)
	}
	messages, failed, err := source.TryReadWithFailures(scope, sourceConfig(s), source.Message)
	if err != nil {
		return beam.PCollection{}, err
	}
	return beam.Flatten(scope, messages, beam.ParDo(scope, refused, failed)), nil
}

func init() { register.Function1x1(refused) }

// refused is the message of a failure.
func refused(f source.Failed) *message.Message { return f.Message }

var inFlagsAtEnd = strings.NewReplacer(
	`TimestampAttribute "`, `--timestamp_attribute "`,
	"source.Config.OnDecodeFailure may drop, return or emit such messages instead", "--bad_timestamp=drop drops such messages, --bad_timestamp=publish_time counts them by their publish time",
)

// sayInFlags returns the error of a run in the words of the flags.
func sayInFlags(err error) error {
	text := err.Error()
	if said := inFlagsAtEnd.Replace(text); said != text {
		return errors.New(said)
	}
	return err
}
