package sink

import (
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func TestWrite_FailsTheBundleClearly(t *testing.T) {
	for name, tc := range map[string]struct {
		word   string
		answer error
		want   string
	}{
		"encoder's error": {"fail", nil, "sink: 1 of the bundle's records failed, the others were published; the first: encode a record for " + topic + ": encoder github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink.encodeWord: no such word"},
		"encoder's panic": {"panic", nil, "sink.encodeWord panicked at prism_test.go:"},
		"ordering key":    {"keyed", nil, "sink: publish to " + topic + ": the message has an ordering key, whose order would be lost: set options.Publisher.EnableMessageOrdering, or clear the key"},
		"permission": {"a", status.Error(codes.PermissionDenied, "User not authorized."),
			"sink: publish to " + topic + ": PermissionDenied: User not authorized. (1 attempt); grant roles/pubsub.publisher"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := server(t)
			if tc.answer != nil {
				srv.Answer("Publish", tc.answer)
			}
			_, fn, err := onPrism(t.Context(), func(s beam.Scope) { write(s, srv.Endpoint(), options.Publisher{}, tc.word) })
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the job ended with %v, want %q", err, tc.want)
			}
			if got := inFlight(t, fn); got != 0 {
				t.Errorf("%d messages left in the pool", got)
			}
		})
	}
}

func TestWrite_MissingTopicIsNamed(t *testing.T) {
	srv := pubsubtest.New(t)
	_, _, err := onPrism(t.Context(), func(s beam.Scope) {
		Write(s, Config{Topic: topic, EmulatorEndpoint: srv.Endpoint(), CreateDisposition: options.CreateNever}, encodeWord, beam.Create(s, "a"))
	})
	want := "sink: publish to " + topic + ": NotFound: "
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "create the topic, or check its name") {
		t.Errorf("the job ended with %v, want %q", err, want)
	}
	if n := srv.Calls("Publish"); n != 1 {
		t.Errorf("%d publish calls", n)
	}
}

func TestWrite_RidesOutQuotaErrors_C32(t *testing.T) {
	srv := server(t)
	srv.Answer("Publish", status.Error(codes.ResourceExhausted, "quota"), pubsubtest.Times(4))
	result, _, err := onPrism(t.Context(), func(s beam.Scope) {
		write(s, srv.Endpoint(), options.Publisher{RetryInitialDelay: time.Millisecond}, numbered(150)...)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(numbered(150), published(srv)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if got := counter(result, "sendErrors"); got != 4 {
		t.Errorf("sendErrors = %d", got)
	}
}

func TestWrite_WaitsForAServerThatIsAbsentAtStart(t *testing.T) {
	srv := server(t)
	srv.Stop()
	ended := make(chan error, 1)
	go func() {
		_, _, err := onPrism(t.Context(), func(s beam.Scope) { write(s, srv.Endpoint(), options.Publisher{}, numbered(10)...) })
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("the job ended without a server: %v", err)
	case <-time.After(500 * time.Millisecond): // several attempts
	}
	if err := srv.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(numbered(10), published(srv)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// A bundle that fails sees no FinishBundle: its queued messages stayed behind,
// held a share of the caps, and were published with the next bundle.
func TestWrite_AFailedBundleLeavesNothingBehind(t *testing.T) {
	srv := server(t)
	_, fn, err := onPrism(t.Context(), func(s beam.Scope) {
		words := beam.ParDo(s, failAtLast, beam.CreateList(s, []string{"a", "b", "last"}))
		Write(s, Config{Topic: topic, EmulatorEndpoint: srv.Endpoint(), Publisher: options.Publisher{BatchDelay: 5 * time.Minute}}, encodeWord, words)
	})
	if err == nil || !strings.Contains(err.Error(), "the producer failed") {
		t.Fatalf("the job ended with %v", err)
	}
	if got := inFlight(t, fn); got != 0 {
		t.Errorf("%d messages left in the pool", got)
	}
	if n := srv.Calls("Publish"); n != 0 {
		t.Errorf("%d publish calls", n)
	}
}

// Without a harness there is no hook: Teardown drops what the bundle left.
func TestWrite_AFailedBundleLeavesNothingBehindOnTheDirectRunner(t *testing.T) {
	srv := server(t)
	fn, err := onDirect(t.Context(), func(s beam.Scope) {
		words := beam.ParDo(s, failAtLast, beam.CreateList(s, []string{"a", "b", "last"}))
		Write(s, Config{Topic: topic, EmulatorEndpoint: srv.Endpoint(), Publisher: options.Publisher{BatchDelay: 5 * time.Minute}}, encodeWord, words)
	})
	if err == nil {
		t.Fatal("the job succeeded")
	}
	if got := inFlight(t, fn); got != 0 {
		t.Errorf("%d messages left in the pool", got)
	}
}
