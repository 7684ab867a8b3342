package sink

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/state"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// A keyedWorker plays the runner of a keyed step: it keeps the state of the bundles
// that succeed, and runs the others again.
type keyedWorker struct {
	fn        *orderedFn
	committed map[string]int64
}

func newKeyedWorker(t *testing.T, srv *pubsubtest.Server, o options.Publisher, onFailure policyKind) *keyedWorker {
	t.Helper()
	o.EnableMessageOrdering = true
	o.RetryInitialDelay, o.RetryMaxDelay = time.Millisecond, 5*time.Millisecond
	pool := publish.Config{Nonce: t.Name(), Publisher: o}
	pool.Connection.EmulatorEndpoint = srv.Endpoint()
	w := &keyedWorker{committed: map[string]int64{}, fn: &orderedFn{
		publication:       publication{Failure: policy{Kind: onFailure}, Pool: pool},
		SequenceAttribute: "n",
		Sequence:          state.MakeValueState[int64]("sequence"),
	}}
	if err := w.fn.Setup(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.fn.Teardown(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// A keyState is the state of one key in a bundle: what is written is kept only if the
// bundle succeeds.
type keyState struct {
	state.Provider // of other kinds: none
	key            string
	committed      map[string]int64
	written        map[string]int64
}

func (s keyState) ReadValueState(string) (any, []state.Transaction, error) {
	if n, ok := s.committed[s.key]; ok {
		return n, nil, nil
	}
	return nil, nil, nil
}

func (s keyState) WriteValueState(val state.Transaction) error {
	s.written[s.key] = val.Val.(int64)
	return nil
}

// run runs a bundle once.
func (w *keyedWorker) run(t *testing.T, arriving []keyed) error {
	t.Helper()
	written := map[string]int64{}
	if err := w.fn.StartBundle(t.Context(), nil); err != nil {
		return err
	}
	for _, k := range arriving {
		// As it comes out of a shuffle.
		own, err := decodeKeyed(encodeKeyed(k))
		if err != nil {
			t.Fatal(err)
		}
		s := keyState{key: k.key(), committed: w.committed, written: written}
		if err := w.fn.ProcessElement(t.Context(), s, k.key(), own, nil); err != nil {
			return err
		}
	}
	if err := w.fn.FinishBundle(t.Context(), nil); err != nil {
		return err
	}
	maps.Copy(w.committed, written)
	return nil
}

// prepared returns the messages from..to of each key, as one process prepares them.
func preparedBy(origin uint64, name string, keys, from, to int) []keyed {
	var out []keyed
	for i := from; i < to; i++ {
		for k := range keys {
			key := fmt.Sprint("k", k)
			m := &message.Message{Data: fmt.Appendf(nil, "%s %s%d", key, name, i), OrderingKey: key}
			out = append(out, keyed{Topic: topic, Message: m, Origin: origin, Number: uint64(i*keys + k)})
		}
	}
	return out
}

// byKeyReversed is how a runner may bring a bundle: key by key, and in each the last
// one first.
func byKeyReversed(messages []keyed) []keyed {
	out := slices.Clone(messages)
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b keyed) int { return cmp.Compare(a.key(), b.key()) })
	return out
}

// numbersStored returns the number of each message, and checks that all copies have
// the same one.
func numbersStored(t *testing.T, srv *pubsubtest.Server) (numbers map[string]int, copies int) {
	t.Helper()
	numbers = map[string]int{}
	for _, m := range srv.Messages(topic) {
		n, err := strconv.Atoi(m.Attributes["n"])
		if err != nil {
			t.Fatal(err)
		}
		word := string(m.Data)
		if before, ok := numbers[word]; ok && before != n {
			t.Errorf("%q has the numbers %d and %d", word, before, n)
		}
		numbers[word] = n
		copies++
	}
	return numbers, copies
}

// A bundle that had published and failed is run again, in another order of arrival:
// the same records carry the same numbers, and the next bundle goes on from there
// (C37).
func TestOrderedFn_ARetriedBundleHasTheSameNumbers_C37(t *testing.T) {
	const keys, each = 5, 40
	srv := server(t)
	w := newKeyedWorker(t, srv, options.Publisher{BatchElementCount: 7}, fail)
	for bundle := range 4 {
		messages := preparedBy(1, "", keys, bundle*each, (bundle+1)*each)
		at := fmt.Sprintf("k3 %d", bundle*each+30)
		srv.Order(pubsubtest.Rule{Method: "Publish", Times: 1, Message: func(m *message.Message) bool { return string(m.Data) == at }},
			pubsubtest.CarryOut(), pubsubtest.Fail(status.Error(codes.PermissionDenied, "not now")))
		if err := w.run(t, byKeyReversed(messages)); status.Code(err) != codes.PermissionDenied {
			t.Fatalf("bundle %d ended with %v, want it to fail", bundle, err)
		}
		rand.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
		if err := w.run(t, messages); err != nil {
			t.Fatal(err)
		}
	}
	numbers, copies := numbersStored(t, srv)
	if len(numbers) != 4*keys*each || copies == len(numbers) {
		t.Errorf("%d messages in %d copies: want %d, some of them twice", len(numbers), copies, 4*keys*each)
	}
	for word, n := range numbers {
		_, i, _ := strings.Cut(word, " ")
		if want, err := strconv.Atoi(i); err != nil || n != want+1 {
			t.Errorf("%q has number %d", word, n)
		}
	}
	expectKeys(t, srv, keys, 4*each)
}

// A message that is dropped leaves a gap in the numbers, which a retry of its bundle
// does not close, and no other is skipped.
func TestOrderedFn_ADroppedMessageLeavesAGapAcrossARetry(t *testing.T) {
	const keys, each = 3, 30
	srv := server(t)
	srv.RefuseMessages(topic, func(m *message.Message) bool { return strings.HasSuffix(string(m.Data), "7") })
	w := newKeyedWorker(t, srv, options.Publisher{BatchElementCount: 4}, logAndDrop)
	srv.Order(pubsubtest.Rule{Method: "Publish", Times: 1, Message: func(m *message.Message) bool { return string(m.Data) == "k1 20" }},
		pubsubtest.Fail(status.Error(codes.PermissionDenied, "not now")))
	first, second := preparedBy(1, "", keys, 0, each), preparedBy(1, "", keys, each, 2*each)
	if err := w.run(t, first); err == nil {
		t.Fatal("the bundle did not fail")
	}
	for _, messages := range [][]keyed{first, second} {
		if err := w.run(t, messages); err != nil {
			t.Fatal(err)
		}
	}
	numbers, _ := numbersStored(t, srv)
	if want := keys * 2 * each * 9 / 10; len(numbers) != want {
		t.Errorf("%d messages, want %d", len(numbers), want)
	}
	for word, n := range numbers {
		_, i, _ := strings.Cut(word, " ")
		if want, err := strconv.Atoi(i); err != nil || n != want+1 {
			t.Errorf("%q has number %d", word, n)
		}
	}
}

// Records of two worker processes arrive mixed, each process's turned round, while
// requests fail in every way that passes: of each key, each process's first copies
// come in the order in which it prepared them, and the numbers rise with them.
func TestOrderedFn_KeepsTheOrderOfTwoProcesses(t *testing.T) {
	const keys, each, bundles = 20, 100, 3
	srv := server(t)
	randomFailures(srv, 7)
	w := newKeyedWorker(t, srv, options.Publisher{}, fail)
	random := rand.New(rand.NewPCG(3, 0))
	for bundle := range bundles {
		a := preparedBy(11, "a", keys, bundle*each, (bundle+1)*each)
		b := preparedBy(22, "b", keys, bundle*each, (bundle+1)*each)
		mixed := append(byKeyReversed(a), b...)
		random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if err := w.run(t, mixed); err != nil {
			t.Fatal(err)
		}
	}
	last, seen, number := map[string]int{}, map[string]bool{}, map[string]int{}
	for _, m := range srv.Messages(topic) {
		word := string(m.Data)
		if seen[word] {
			continue
		}
		seen[word] = true
		key, rest, _ := strings.Cut(word, " ")
		line := key + rest[:1]
		i, err := strconv.Atoi(rest[1:])
		if err != nil {
			t.Fatal(err)
		}
		if want, ok := last[line]; ok && i != want+1 || !ok && i != 0 {
			t.Fatalf("%q comes after %d of its process", word, last[line])
		}
		last[line] = i
		if number[key]++; m.Attributes["n"] != strconv.Itoa(number[key]) {
			t.Fatalf("%q is number %s, the %d. of its key", word, m.Attributes["n"], number[key])
		}
	}
	if want := keys * 2 * each * bundles; len(seen) != want {
		t.Errorf("%d messages, want %d", len(seen), want)
	}
	if load := srv.PublishLoad(topic); load.MaxKeyCalls > 1 {
		t.Errorf("%d requests at once for key %s", load.MaxKeyCalls, load.BusiestKey)
	}
}

// A bundle of more than could be held back was published in two parts, each in order,
// and the key at which the first one ended lost its own.
func TestOrderedFn_ALargeBundleKeepsItsOrder(t *testing.T) {
	const keys, each, size = 20, 100, 2 * maxHeldBytes / (20 * 100)
	srv := server(t)
	w := newKeyedWorker(t, srv, options.Publisher{}, fail)
	messages := preparedBy(1, "", keys, 0, each)
	padding := make([]byte, size)
	for _, k := range messages {
		k.Message.Data = append(append(k.Message.Data, ' '), padding...)
	}
	if err := w.run(t, byKeyReversed(messages)); err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for _, m := range srv.Messages(topic) {
		number := strings.Fields(string(m.Data[:20]))[1]
		if number != strconv.Itoa(next[m.OrderingKey]) {
			t.Fatalf("key %s: number %s where %d belongs", m.OrderingKey, number, next[m.OrderingKey])
		}
		next[m.OrderingKey]++
	}
	if len(next) != keys {
		t.Errorf("%d keys", len(next))
	}
	if most := srv.PublishLoad(topic).MaxKeyCalls; most > 1 {
		t.Errorf("%d requests of a key at once", most)
	}
}
