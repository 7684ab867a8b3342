package check_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// impatient checks a pipeline that reads sub and publishes to out.
func impatient(t *testing.T, endpoint string) (check.Report, error) {
	t.Helper()
	return check.Run(t.Context(), check.Configs{
		Sources: []source.Config{{Subscriptions: source.From(sub), EmulatorEndpoint: endpoint}},
		Sinks:   []sink.Config{{Topic: out, EmulatorEndpoint: endpoint}},
	}, check.Options{Patience: time.Second})
}

// stateOf is the state of a resource that is in r.
func stateOf(r check.Report, name string) check.State {
	for _, res := range r.Resources {
		if res.Name == name {
			return res.State
		}
	}
	return ""
}

// A service that was busy was told of as one that had not answered, and the program, to
// which all but the look was open, did not run.
func TestRun_AServiceThatAnswersIsNotAbsent(t *testing.T) {
	for _, c := range []struct {
		method string
		code   codes.Code
		of     string // of what nothing is known then
	}{
		{"ListTopicSubscriptions", codes.ResourceExhausted, ""},
		{"ListTopicSubscriptions", codes.Unimplemented, ""},
		{"GetSubscription", codes.ResourceExhausted, sub},
		{"GetTopic", codes.ResourceExhausted, out},
		{"GetTopic", codes.Unavailable, out},
		{"GetTopic", codes.Internal, out},
		{"GetTopic", codes.Unknown, out},
		{"GetTopic", codes.DeadlineExceeded, out},
		{"GetTopic", codes.Unimplemented, out},
	} {
		t.Run(fmt.Sprint(c.method, " ", c.code), func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			srv.Answer(c.method, status.Error(c.code, "slow down"))
			r, err := impatient(t, srv.Endpoint())
			if err != nil || r.Err() != nil {
				t.Fatalf("%v, %v", err, r.Err())
			}
			if c.of == "" {
				if !r.Clean() || stateOf(r, out) != check.Exists {
					t.Error(lines(r))
				}
				return
			}
			want := fmt.Sprintf("  warning: could not be looked up, and nothing of it was checked: %v: slow down; what is wrong with it, if anything, shows in the run\n", c.code)
			if stateOf(r, c.of) != check.Unknown || !strings.Contains(lines(r), want) {
				t.Errorf("got:\n%swant:\n%s", lines(r), want)
			}
		})
	}
}

// A read cannot begin without this call.
func TestRun_ALookThatTheReadMakesIsAFault(t *testing.T) {
	srv := newServer(t)
	srv.Answer("GetSubscription", status.Error(codes.Unimplemented, "no"))
	r, err := impatient(t, srv.Endpoint())
	if want := "  fault: cannot be looked up: Unimplemented: no\n"; err != nil || !strings.Contains(lines(r), want) {
		t.Errorf("%v, got:\n%swant:\n%s", err, lines(r), want)
	}
}

// Of a call that is never answered nothing is known but that the service is there, where
// it has answered others.
func TestRun_AServiceThatAnswersOtherCallsIsNotAbsent(t *testing.T) {
	for method, state := range map[string]check.State{"GetTopic": check.Unknown, "ListTopicSubscriptions": check.Exists} {
		srv := newServer(t)
		srv.Order(pubsubtest.Rule{Method: method}, pubsubtest.NeverAnswer())
		r, err := impatient(t, srv.Endpoint())
		if err != nil || r.Err() != nil || stateOf(r, out) != state {
			t.Errorf("%s: %v, %v\n%s", method, err, r.Err(), lines(r))
		}
	}
}

// Silence is absence, and so is the answer of somebody who does not speak gRPC.
func TestRun_AServiceThatDoesNotAnswerIsAbsent(t *testing.T) {
	srv := newServer(t)
	srv.Order(pubsubtest.Rule{Method: "GetSubscription"}, pubsubtest.NeverAnswer())
	for name, c := range map[string]struct{ endpoint, says string }{
		"silent": {srv.Endpoint(), ""},
		"web":    {serveWeb(t), "404"},
	} {
		_, err := impatient(t, c.endpoint)
		var absent *check.AbsentError
		if !errors.As(err, &absent) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// serveWeb returns the endpoint of a server that finds nothing.
func serveWeb(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: http.NotFoundHandler(), Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute}
	web.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan struct{})
	go func() { // Close ends it.
		defer close(served)
		_ = web.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = web.Close()
		<-served
	})
	return listener.Addr().String()
}
