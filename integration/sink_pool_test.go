package integration

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func init() {
	register.DoFn2x0[[]byte, func(string)](&countedWords{})
	register.Emitter1[string]()
	sink.RegisterResolver(topicOfWord)
	sink.RegisterHandler(countFailure)
}

// countedWords emits the numbers from 0 to N.
type countedWords struct{ N int }

func (fn *countedWords) ProcessElement(_ []byte, emit func(string)) {
	for i := range fn.N {
		emit(strconv.Itoa(i))
	}
}

// wordTopics is how many topics topicOfWord spreads the numbers over.
const wordTopics = 10_000

func wordTopic(i int) string { return fmt.Sprintf("projects/integration/topics/word%d", i%wordTopics) }

func topicOfWord(word string, _ time.Time) (string, error) {
	i, err := strconv.Atoi(word)
	return wordTopic(i), err
}

// Publishers, goroutines and connections piled up with the topics (C34).
func TestSink_TenThousandTopicsThroughAHundredPublishers_C34(t *testing.T) {
	long(t)
	for name, existing := range map[string]bool{"existing": true, "created": false} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			if existing {
				for i := range wordTopics {
					srv.MustCreateTopic(wordTopic(i))
				}
			}
			expectNoneOfOurs := watchGoroutines()
			var most atomic.Int64
			// Asked at each tenth request: what is under way then is in full swing.
			srv.Order(pubsubtest.Rule{Method: "Publish", Every: 10, Message: func(*message.Message) bool {
				if n := int64(runtime.NumGoroutine()); n > most.Load() {
					most.Store(n)
				}
				return true
			}}, pubsubtest.Wait(0))
			p, s := beam.NewPipelineWithRoot()
			words := beam.ParDo(s, &countedWords{wordTopics + 5000}, beam.Impulse(s))
			sink.Write(s, sink.Config{
				Resolve: sink.ResolveWith(topicOfWord), EmulatorEndpoint: srv.Endpoint(),
				Publisher: options.Publisher{RecoveryInitialBackoff: time.Millisecond},
			}, sink.String, words)
			must(t, runPipeline(within(t, 3*time.Minute), p))
			load := srv.PublishLoad("")
			if _, open := srv.Connections(); open > 10 || load.MaxCalls > 100 {
				t.Errorf("%d connections and %d calls at once", open, load.MaxCalls)
			}
			// A call has a goroutine here, and one or two in the server.
			t.Logf("at most %d goroutines, %d calls at once", most.Load(), load.MaxCalls)
			if most.Load() > 1000 {
				t.Errorf("%d goroutines", most.Load())
			}
			for i := range wordTopics {
				want := int64(1)
				if i < 5000 {
					want = 2
				}
				if got := srv.Published(wordTopic(i)); got != want {
					t.Fatalf("%s has %d messages, want %d", wordTopic(i), got, want)
				}
			}
			if calls := srv.Calls("CreateTopic"); existing && calls != 0 || !existing && calls != wordTopics {
				t.Errorf("%d topics were created", calls)
			}
			expectNoneOfOurs(t)
		})
	}
}

// failuresCounted is what countFailure has been handed.
var failuresCounted atomic.Int64

func countFailure(context.Context, sink.Failed) error {
	failuresCounted.Add(1)
	return nil
}

// The guardrail trips at exactly its count, after the message that trips it was
// handed over, says what and why, and begins anew; a success starts the count again.
func TestSink_GuardrailTripsAtItsCount(t *testing.T) {
	const limit = 7
	write := func(t *testing.T, srv *pubsubtest.Server, n int) (handled int64, err error) {
		t.Helper()
		failuresCounted.Store(0)
		p, s := beam.NewPipelineWithRoot()
		sink.Write(s, sink.Config{
			Topic: outTopic, EmulatorEndpoint: srv.Endpoint(), OnFailure: sink.HandleWith(countFailure),
			Publisher: options.Publisher{MaxConsecutiveRejections: limit, BatchElementCount: 1, MaxInFlightMessages: 1},
		}, sink.String, beam.ParDo(s, &countedWords{n}, beam.Impulse(s)))
		err = runPipeline(within(t, time.Minute), p)
		return failuresCounted.Load(), err
	}
	all := func(*message.Message) bool { return true }
	t.Run("one under", func(t *testing.T) {
		srv := newServer(t)
		srv.RefuseMessages(outTopic, all)
		if n, err := write(t, srv, limit-1); err != nil || n != limit-1 {
			t.Errorf("%d handled, %v", n, err)
		}
	})
	t.Run("at the count, and again", func(t *testing.T) {
		srv := newServer(t)
		srv.RefuseMessages(outTopic, all)
		for range 2 {
			n, err := write(t, srv, 50)
			expectError(t, err, "7 messages in a row were rejected", "options.Publisher.MaxConsecutiveRejections", "InvalidArgument", "schema validation")
			if n != limit {
				t.Errorf("%d handled, want %d", n, limit)
			}
		}
	})
	t.Run("a success between", func(t *testing.T) {
		srv := newServer(t)
		srv.RefuseMessages(outTopic, func(m *message.Message) bool { n, _ := strconv.Atoi(string(m.Data)); return n%limit != 0 })
		if n, err := write(t, srv, 10*limit); err != nil || n != 10*(limit-1) {
			t.Errorf("%d handled, %v", n, err)
		}
	})
}
