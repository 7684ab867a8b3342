package sink

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/window"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func init() {
	register.DoFn2x0[[]byte, func(beam.EventTime, string)](&keyedWords{})
	register.Emitter2[beam.EventTime, string]()
	RegisterEncoder(encodeKeyedWord)
}

// keyedWords emits "key number", Each of every key, the keys in turn.
type keyedWords struct {
	Keys, Each int
	// Step is how much later than the one before each is; zero gives all of them one
	// time.
	Step time.Duration
}

func (fn *keyedWords) ProcessElement(_ []byte, emit func(beam.EventTime, string)) {
	at := mtime.FromTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for i := range fn.Each {
		for k := range fn.Keys {
			emit(at, fmt.Sprintf("k%d %d", k, i))
		}
		at = at.Add(fn.Step)
	}
}

// encodeKeyedWord publishes "key number" under its key, or without one where the key
// is "-".
func encodeKeyedWord(word string) (*message.Message, error) {
	key, _, ok := strings.Cut(word, " ")
	if !ok {
		return nil, errors.New("no key")
	}
	if key == "-" {
		key = ""
	}
	return &message.Message{Data: []byte(word), OrderingKey: key}, nil
}

// keysOf returns what was published of each key, as numbers in the order in which
// the server stored their first copies.
func keysOf(t *testing.T, srv *pubsubtest.Server) map[string][]int {
	t.Helper()
	out, seen := map[string][]int{}, map[string]bool{}
	for _, m := range srv.Messages(topic) {
		word := string(m.Data)
		if seen[word] {
			continue
		}
		seen[word] = true
		key, number, _ := strings.Cut(word, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		out[key] = append(out[key], n)
	}
	return out
}

func expectKeys(t *testing.T, srv *pubsubtest.Server, keys, each int) {
	t.Helper()
	got := keysOf(t, srv)
	if len(got) != keys {
		t.Errorf("%d keys, want %d", len(got), keys)
	}
	for key, numbers := range got {
		if len(numbers) != each || !slices.IsSorted(numbers) {
			t.Errorf("key %s: %d of %d, in order %t: %.200v", key, len(numbers), each, slices.IsSorted(numbers), numbers)
		}
	}
}

// randomFailures has every class of passing failure happen to a part of the calls.
func randomFailures(srv *pubsubtest.Server, seed uint64) {
	for i, order := range []struct {
		rule    pubsubtest.Rule
		actions []pubsubtest.Action
	}{
		{pubsubtest.Rule{Probability: 0.02}, []pubsubtest.Action{pubsubtest.Fail(status.Error(codes.Unavailable, "away"))}},
		{pubsubtest.Rule{Probability: 0.02}, []pubsubtest.Action{pubsubtest.Fail(status.Error(codes.ResourceExhausted, "quota"))}},
		{pubsubtest.Rule{Probability: 0.02}, []pubsubtest.Action{pubsubtest.CarryOut(), pubsubtest.Fail(status.Error(codes.DeadlineExceeded, "late"))}},
		{pubsubtest.Rule{Probability: 0.05}, []pubsubtest.Action{pubsubtest.Wait(2 * time.Millisecond)}},
	} {
		order.rule.Method, order.rule.Seed = "Publish", seed+uint64(i)
		srv.Order(order.rule, order.actions...)
	}
}

// wholeBundles has prism split no bundle, as pubsubio.Run does.
func wholeBundles(t *testing.T) {
	t.Helper()
	set := func(value string) {
		if err := flag.Set("experiments", value); err != nil {
			t.Fatal(err)
		}
	}
	set("prism_disable_sdf_split")
	t.Cleanup(func() { set("") })
}

func orderedConfig(srv *pubsubtest.Server, by options.OrderBy) Config {
	return Config{
		Topic: topic, EmulatorEndpoint: srv.Endpoint(), OrderBy: by,
		Publisher: options.Publisher{EnableMessageOrdering: true, RetryInitialDelay: time.Millisecond, RetryMaxDelay: 5 * time.Millisecond},
	}
}

// Each key's first copies come in order, whatever fails: records of equal times,
// which prism turns round in a keyed step, and windowed ones.
func TestWrite_KeepsTheOrderOfEachKey(t *testing.T) {
	const keys, each = 100, 200
	for _, by := range []options.OrderBy{options.OrderInPlace, options.OrderByKey} {
		for name, build := range map[string]func(beam.Scope) beam.PCollection{
			"one time": func(s beam.Scope) beam.PCollection { return beam.ParDo(s, &keyedWords{keys, each, 0}, beam.Impulse(s)) },
			"rising times": func(s beam.Scope) beam.PCollection {
				return beam.ParDo(s, &keyedWords{keys, each, time.Second}, beam.Impulse(s))
			},
			"falling times": func(s beam.Scope) beam.PCollection {
				return beam.ParDo(s, &keyedWords{keys, each, -time.Second}, beam.Impulse(s))
			},
			"windowed": func(s beam.Scope) beam.PCollection {
				words := beam.ParDo(s, &keyedWords{keys, each, time.Second}, beam.Impulse(s))
				return beam.WindowInto(s, window.NewFixedWindows(10*time.Second), words)
			},
		} {
			t.Run(fmt.Sprint(by, " ", name), func(t *testing.T) {
				wholeBundles(t)
				srv := server(t)
				randomFailures(srv, 1)
				_, _, err := onPrism(t.Context(), func(s beam.Scope) {
					Write(s, orderedConfig(srv, by), encodeKeyedWord, build(s))
				})
				if err != nil {
					t.Fatal(err)
				}
				expectKeys(t, srv, keys, each)
				if load := srv.PublishLoad(topic); load.MaxKeyCalls > 1 {
					t.Errorf("%d requests at once for key %s", load.MaxKeyCalls, load.BusiestKey)
				}
			})
		}
	}
}

// A rejected message leaves a gap; the survivors of its key keep their order.
func TestWrite_OrderOfTheSurvivors_C29(t *testing.T) {
	const keys, each = 10, 100
	for _, by := range []options.OrderBy{options.OrderInPlace, options.OrderByKey} {
		t.Run(by.String(), func(t *testing.T) {
			wholeBundles(t)
			srv := server(t)
			srv.RefuseMessages(topic, func(m *message.Message) bool { return strings.HasSuffix(string(m.Data), "7") })
			cfg := orderedConfig(srv, by)
			cfg.OnFailure = LogAndDrop()
			result, _, err := onPrism(t.Context(), func(s beam.Scope) {
				Write(s, cfg, encodeKeyedWord, beam.ParDo(s, &keyedWords{keys, each, 0}, beam.Impulse(s)))
			})
			if err != nil {
				t.Fatal(err)
			}
			expectKeys(t, srv, keys, each-each/10)
			if got := counter(result, "recordsFailed"); got != keys*each/10 {
				t.Errorf("recordsFailed = %d", got)
			}
		})
	}
}

// In both modes messages without a key are published, and wait for no key.
func TestWrite_MessagesWithoutAKeyBesideOrder(t *testing.T) {
	for _, by := range []options.OrderBy{options.OrderInPlace, options.OrderByKey} {
		t.Run(by.String(), func(t *testing.T) {
			srv := server(t)
			var words []string
			for i := range 300 {
				words = append(words, fmt.Sprint("- ", i))
			}
			_, _, err := onPrism(t.Context(), func(s beam.Scope) {
				Write(s, orderedConfig(srv, by), encodeKeyedWord, beam.CreateList(s, words))
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(keysOf(t, srv)["-"]); got != 300 {
				t.Errorf("%d published", got)
			}
		})
	}
}

// numbersOf runs five keys of sixty through a numbering write and returns the number
// of each message, and how many copies there were of it.
func numbersOf(t *testing.T, srv *pubsubtest.Server, onFailure FailurePolicy) (numbers map[string]string, copies map[string]int) {
	t.Helper()
	wholeBundles(t)
	cfg := orderedConfig(srv, options.OrderByKey)
	cfg.SequenceAttribute = "n"
	cfg.OnFailure = onFailure
	if _, _, err := onPrism(t.Context(), func(s beam.Scope) {
		Write(s, cfg, encodeKeyedWord, beam.ParDo(s, &keyedWords{5, 60, 0}, beam.Impulse(s)))
	}); err != nil {
		t.Fatal(err)
	}
	numbers, copies = map[string]string{}, map[string]int{}
	for _, m := range srv.Messages(topic) {
		word, n := string(m.Data), m.Attributes["n"]
		if before, ok := numbers[word]; ok && before != n {
			t.Errorf("%q has the numbers %s and %s", word, before, n)
		}
		numbers[word] = n
		copies[word]++
	}
	for word, n := range numbers {
		_, i, _ := strings.Cut(word, " ")
		if want, err := strconv.Atoi(i); err != nil || n != strconv.Itoa(want+1) {
			t.Errorf("%q has number %s", word, n)
		}
	}
	return numbers, copies
}

// The answer to the first request of each key is lost: nothing is, and the copy has the same
// number (C37).
func TestWrite_ACopyHasTheSameSequenceNumber_C37(t *testing.T) {
	srv := server(t)
	for k := range 5 {
		srv.Order(pubsubtest.Rule{Method: "Publish", OrderingKey: fmt.Sprint("k", k), Times: 1},
			pubsubtest.CarryOut(), pubsubtest.Fail(status.Error(codes.DeadlineExceeded, "lost")))
	}
	numbers, copies := numbersOf(t, srv, Fail())
	twice := 0
	for word, n := range copies {
		switch n {
		case 1:
		case 2:
			twice++
		default:
			t.Errorf("%d copies of %q", n, word)
		}
	}
	if len(numbers) != 300 || twice == 0 {
		t.Errorf("%d messages, %d of them twice", len(numbers), twice)
	}
}

// A consumer sees by its number that a message is missing.
func TestWrite_ADroppedMessageLeavesAGapInTheSequence(t *testing.T) {
	srv := server(t)
	srv.RefuseMessages(topic, func(m *message.Message) bool { return strings.HasSuffix(string(m.Data), " 30") })
	numbers, _ := numbersOf(t, srv, LogAndDrop())
	if len(numbers) != 295 {
		t.Errorf("%d messages, want 295", len(numbers))
	}
}
