package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// advance moves the bubble's clock by d and waits until all is quiet.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual: the bubble's clock, not the machine's
	synctest.Wait()
}

// A topic that refuses everything filled the log with a line a record.
func TestDropLog_TellsAtADecreasingRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		s := new(stats.Sink)
		drop := func(n int) (told []int64) {
			for range n {
				l := &dropLog{stats: s, warn: func(_ context.Context, text string) { lines = append(lines, text) }}
				l.dropped(t.Context(), newFailure(topic, 0, errors.New("no such word")))
				if len(lines) > 0 {
					told, lines = append(told, s.Dropped.Load()), nil
				}
			}
			return told
		}
		if got, want := drop(1000), []int64{1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256, 512}; !slices.Equal(got, want) {
			t.Errorf("told at %v, want %v", got, want)
		}
		advance(time.Minute)
		if got, want := drop(30), []int64{1001, 1024}; !slices.Equal(got, want) {
			t.Errorf("a minute later told at %v, want %v", got, want)
		}
		advance(time.Minute - time.Millisecond)
		if got := drop(1); got != nil {
			t.Errorf("told at %v, less than a minute after the last", got)
		}
	})
}

func TestDropLog_TellsTheNumberAndTheReasonAndNoContent(t *testing.T) {
	var line string
	l := &dropLog{stats: new(stats.Sink), warn: func(_ context.Context, text string) { line = text }}
	m := &message.Message{Data: []byte("secret"), Attributes: map[string]string{"k": strings.Repeat("secret", 200)}, OrderingKey: "secret"}
	l.dropped(t.Context(), rejected(publish.Rejection{Topic: topic, Message: m, Err: fmt.Errorf("checked: %w", &publish.RuleError{Rule: "the value of attribute \"k\" has 1200 bytes"})}))
	want := "sink: dropped a record, 1 so far: publish to " + topic + `: checked: message refused before publishing: the value of attribute "k" has 1200 bytes`
	if line != want {
		t.Errorf("told %s, want %s", line, want)
	}
}
