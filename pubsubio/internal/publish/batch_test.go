package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%04d", i)
	}
	return out
}

func TestPool_BatchesByCountAcrossBundles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{}
		p := newTestPool(t, f, options.Publisher{BatchElementCount: 10, BatchDelay: time.Hour})
		a, b := open(t, p), open(t, p)
		for i := range 10 {
			mustAdd(t, []*Bundle{a, b}[i%2], fmt.Sprint(i))
		}
		mustFinish(t, a)
		mustFinish(t, b)
		if got := f.sizes(); !slices.Equal(got, []int{10}) {
			t.Errorf("requests of %v messages, want one of 10", got)
		}
		if a.Counts().DestinationCounts != (DestinationCounts{Published: 5, Bytes: 25}) || b.Counts().DestinationCounts != a.Counts().DestinationCounts {
			t.Errorf("counts %+v and %+v", a.Counts(), b.Counts())
		}
	})
}

func TestPool_SendsAfterBatchDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{}
		p := newTestPool(t, f, options.Publisher{})
		b := open(t, p)
		for i := range 2 { // the second has the timer of the first
			mustAdd(t, b, "x")
			pass(9 * time.Millisecond)
			synctest.Wait()
			if f.calls != i {
				t.Errorf("%d requests 9 ms after the first message, want %d", f.calls, i)
			}
			mustAdd(t, b, "y")
			pass(2 * time.Millisecond)
			synctest.Wait()
			if f.calls != i+1 {
				t.Errorf("%d requests 11 ms after the first message, want %d", f.calls, i+1)
			}
		}
		mustFinish(t, b)
		if got := f.sizes(); !slices.Equal(got, []int{2, 2}) {
			t.Errorf("requests of %v messages", got)
		}
	})
}

func TestFinish_SendsAtOnceAndWaitsForItsOwnMessagesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{}
		f.answer = func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			if r.Topic == otherTopic {
				return answer(ctx, r)
			}
			return nil
		}
		p := newTestPool(t, f, options.Publisher{BatchDelay: time.Hour})
		slow, quick := open(t, p), open(t, p)
		if err := slow.Add(t.Context(), otherTopic, text("slow"), 0); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- slow.Finish(t.Context()) }()
		synctest.Wait()
		began := time.Now()
		mustAdd(t, quick, "a")
		mustFinish(t, quick)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a bundle waited %v for another one's message", waited)
		}
		select {
		case err := <-done:
			t.Errorf("Finish returned %v before its message was answered", err)
		default:
		}
		release(nil)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Requests passed 1,000 messages, or 10 MB by proto.Size, because the framing
// was not counted or the check came after the append.
func TestPool_RequestsStayWithinTheServicesLimits_C28(t *testing.T) {
	sixty := func(i int) *message.Message {
		m := &message.Message{Attributes: make(map[string]string, 60)}
		for j := range 60 {
			m.Attributes[fmt.Sprintf("attribute%03d", j)] = strings.Repeat("v", 150) + fmt.Sprint(i)
		}
		return m
	}
	for name, tc := range map[string]struct {
		o        options.Publisher
		messages []*message.Message
		requests int
	}{
		"1,500 tiny":              {options.Publisher{BatchElementCount: 1000}, slices.Repeat([]*message.Message{text("x")}, 1500), 2},
		"1,000 of 60 attributes":  {options.Publisher{BatchElementCount: 1000, BatchBytes: options.MaxRequestBytes}, tabulate(1000, sixty), 2},
		"9.5 MB, then 1 MB":       {options.Publisher{BatchBytes: options.MaxRequestBytes}, []*message.Message{{Data: make([]byte, 9_500_000)}, {Data: make([]byte, 1_000_000)}}, 2},
		"8 MB by default (C36)":   {options.Publisher{}, []*message.Message{text("a"), {Data: make([]byte, 8_000_000)}, text("b")}, 3},
		"10 MB above a cap (C36)": {options.Publisher{MaxInFlightBytes: 1_000_000}, []*message.Message{text("a"), {Data: make([]byte, 9_999_900)}, text("b")}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeService{}
				tc.o.MaxInFlightMessages = 10_000
				tc.o.BatchDelay = time.Hour
				p := newTestPool(t, f, tc.o)
				b := open(t, p)
				for _, m := range tc.messages {
					if err := b.Add(t.Context(), topic, m, 0); err != nil {
						t.Fatal(err)
					}
				}
				mustFinish(t, b)
				total := 0
				for _, r := range f.published {
					total += len(r.Messages)
					if n, size := len(r.Messages), proto.Size(r); n > options.MaxRequestMessages || size > options.MaxRequestBytes {
						t.Errorf("request of %d messages and %d bytes", n, size)
					}
				}
				if total != len(tc.messages) || len(f.published) != tc.requests {
					t.Errorf("%d messages in %d requests, want %d in %d", total, len(f.published), len(tc.messages), tc.requests)
				}
			})
		})
	}
}

func tabulate[T any](n int, f func(int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// An empty message crashed the publisher, invalid UTF-8 was retried for ever
// with the 99 good messages of its batch.
func TestAdd_RuleErrorTouchesNoNeighbour_C30(t *testing.T) {
	for name, bad := range map[string]*message.Message{
		"empty": {}, "UTF-8": {Attributes: map[string]string{"a\xc5z": "v"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeService{}
				p := newTestPool(t, f, options.Publisher{})
				var routed []Rejection
				b := openWith(t, p, Handlers{Reject: collect(&routed)})
				want := numbered(99)
				began := time.Now()
				mustAdd(t, b, want[:50]...)
				if err := b.Add(t.Context(), topic, bad, 7); err != nil {
					t.Error(err)
				}
				var rule *RuleError
				if len(routed) != 1 || routed[0].Tag != 7 || !errors.As(routed[0].Err, &rule) {
					t.Errorf("to the handler: %+v", routed)
				}
				mustAdd(t, b, want[50:]...)
				mustFinish(t, b)
				if took := time.Since(began); took > time.Second {
					t.Errorf("took %v", took)
				}
				if diff := cmp.Diff(want, f.data()); diff != "" {
					t.Errorf("published (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAdd_RefusesAnOrderingKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, &fakeService{}, options.Publisher{})
		b := open(t, p)
		if err := b.Add(t.Context(), topic, &message.Message{Data: []byte("x"), OrderingKey: "k"}, 0); !errors.Is(err, ErrOrderingKey) {
			t.Errorf("Add: %v", err)
		}
		mustFinish(t, b)
	})
}

// The caller may reuse a message's memory as soon as Add has returned.
func TestAdd_KeepsNoReference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{}
		p := newTestPool(t, f, options.Publisher{})
		b := open(t, p)
		m := &message.Message{Data: []byte("a"), Attributes: map[string]string{"k": "v"}}
		for _, c := range "abc" {
			m.Data[0] = byte(c)
			m.Attributes["k"] = string(c)
			if err := b.Add(t.Context(), topic, m, 0); err != nil {
				t.Fatal(err)
			}
		}
		clear(m.Attributes)
		mustFinish(t, b)
		for i, m := range f.published[0].Messages {
			if want := string(rune('a' + i)); string(m.Data) != want || m.Attributes["k"] != want {
				t.Errorf("message %d is %v", i, m)
			}
		}
	})
}
