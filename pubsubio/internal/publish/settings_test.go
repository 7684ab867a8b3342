package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A setting of an ordered publish that would bound it is refused; the rest holds.
func TestOrder_RetriesHaveNoBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &fakeService{answer: func(context.Context, *pubsubpb.PublishRequest) error {
			if time.Since(began) < time.Hour {
				return status.Error(codes.Unavailable, "away")
			}
			return nil
		}}
		p := newTestPool(t, f, options.Publisher{EnableMessageOrdering: true, PublishProgressTimeout: 2 * time.Hour})
		b := open(t, p)
		if err := b.Add(t.Context(), topic, keyed("k", "x"), 0); err != nil {
			t.Fatal(err)
		}
		mustFinish(t, b)
	})
}

// A callOptions takes the options of calls and answers them.
type callOptions struct {
	grpc.ClientConnInterface
	compressed []bool
}

func (c *callOptions) Invoke(_ context.Context, _ string, _, reply any, opts ...grpc.CallOption) error {
	found := false
	for _, o := range opts {
		if o, ok := o.(grpc.CompressorCallOption); ok && o.CompressorType == gzip.Name {
			found = true
		}
	}
	c.compressed = append(c.compressed, found)
	*reply.(*idCount) = 1
	return nil
}

func TestSender_CompressesRequestsFromThatSize(t *testing.T) {
	for compression, want := range map[int][]bool{0: {false, false, false}, 100: {false, true, true}, 101: {false, false, true}} {
		conn := new(callOptions)
		send := sender(conn, compression)
		for _, size := range []int{99, 100, 9_999_999} {
			if err := send(t.Context(), &payload{buf: make([]byte, size)}, 1); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(conn.compressed, want) {
			t.Errorf("Compression %d: %v, want %v", compression, conn.compressed, want)
		}
	}
}

// What is refused for its size is refused before compression: the service counts
// what it unpacks.
func TestAdd_LimitsCountBeforeCompression_C38(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{}
		p := newTestPool(t, f, options.Publisher{Compression: 1})
		var routed []Rejection
		b := openWith(t, p, Handlers{Reject: collect(&routed)})
		for _, size := range []int{9_900_000, 10_000_001} {
			if err := b.Add(t.Context(), topic, &message.Message{Data: make([]byte, size)}, int64(size)); err != nil {
				t.Fatal(err)
			}
		}
		mustFinish(t, b)
		if len(f.published) != 1 || len(routed) != 1 || routed[0].Tag != 10_000_001 || !strings.Contains(routed[0].Err.Error(), "the limit is 10000000") {
			t.Errorf("%d requests, rejected: %d", len(f.published), len(routed))
		}
	})
}

func TestCreateTopic_SendsEverySetting(t *testing.T) {
	got := newTopic(topic, options.TopicCreate{
		MessageRetention:          time.Hour,
		KMSKeyName:                "projects/p/locations/l/keyRings/r/cryptoKeys/k",
		AllowedPersistenceRegions: []string{"europe-west1", "europe-west4"},
		EnforceInTransit:          true,
	})
	want := &pubsubpb.Topic{
		Name:                     topic,
		MessageRetentionDuration: durationpb.New(time.Hour),
		KmsKeyName:               "projects/p/locations/l/keyRings/r/cryptoKeys/k",
		MessageStoragePolicy: &pubsubpb.MessageStoragePolicy{
			AllowedPersistenceRegions: []string{"europe-west1", "europe-west4"},
			EnforceInTransit:          true,
		},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&pubsubpb.Topic{Name: topic}, newTopic(topic, options.TopicCreate{}), protocmp.Transform()); diff != "" {
		t.Errorf("without settings (-want +got):\n%s", diff)
	}
}

func TestCounts_ByDestinationOnlyOnRequest(t *testing.T) {
	for _, on := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeService{answer: failing(1, status.Error(codes.Unavailable, "away"))}
			p := newTestPool(t, f, options.Publisher{PerDestinationMetrics: on})
			b := open(t, p)
			mustAdd(t, b, "a")
			synctest.Wait()
			pass(time.Minute)
			mustAddTo(t, b, otherTopic, "b")
			mustFinish(t, b)
			var want map[string]DestinationCounts
			if on {
				want = map[string]DestinationCounts{topic: {Published: 1, Bytes: 5, Errors: 1}, otherTopic: {Published: 1, Bytes: 5}}
			}
			c := b.Counts()
			if diff := cmp.Diff(want, c.Destinations); diff != "" {
				t.Errorf("by destination (-want +got):\n%s", diff)
			}
			if got := fmt.Sprint(c.ErrorsByCode); got != "map[Unavailable:1]" || c.Published != 2 {
				t.Errorf("errors by code %s, %d published", got, c.Published)
			}
		})
	}
}
