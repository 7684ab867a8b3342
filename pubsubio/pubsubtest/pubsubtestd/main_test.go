package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	topic = "projects/p/topics/ttt"
	sub   = "projects/p/subscriptions/sss"
)

func TestRun_ServesUntilStdinCloses(t *testing.T) {
	stdin, stopper := io.Pipe()
	out, stdout := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(context.Background(), []string{
			"--topic=" + topic, "--subscription=" + sub + "=" + topic,
			"--publish=2500", "--size=10", "--stats-addr=127.0.0.1:0", "--until-stdin-closes",
		}, stdin, stdout, io.Discard)
		_ = stdout.Close()
		done <- err
	}()
	lines := bufio.NewScanner(out)
	line := func(prefix string) string {
		t.Helper()
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), prefix) {
			t.Fatalf("got %q, want %q…", lines.Text(), prefix)
		}
		return strings.TrimPrefix(lines.Text(), prefix)
	}
	stats := line("stats on ")
	endpoint := line("listening on ")

	if got := emulator.Dial(t, endpoint).Drain(sub); len(got) != 2500 || len(got[0].GetData()) != 10 {
		t.Errorf("drained %d messages", len(got))
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(stats)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var c counts
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil {
		t.Fatal(err)
	}
	if c.Published[topic] != 2500 || c.Subscriptions[sub].Acknowledged != 2500 || c.MaxConnections != 1 {
		t.Errorf("counts %+v", c)
	}

	_ = stopper.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOrder_FaultsAreOfTheMethod(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topic)
	srv.MustCreateSubscription(sub, topic)
	if err := order(srv, flags{delays: list{"Publish=30ms"}, fails: list{"Publish=UNAVAILABLE", "Pull=ABORTED:0.0001"}}); err != nil {
		t.Fatal(err)
	}
	c := emulator.Dial(t, srv.Endpoint())
	start := time.Now()
	_, err := c.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("x")}}})
	if took := time.Since(start); status.Code(err) != codes.Unavailable || took < 30*time.Millisecond {
		t.Errorf("publish: %v after %v", err, took)
	}
	c.Pull(sub, 1, false)
}

func TestOrder_AJSONOnlyTopicRefusesTheRest(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topic)
	srv.MustCreateTopic(topic + "2")
	if err := order(srv, flags{topics: list{topic, topic + "2"}, jsonOnly: list{topic}}); err != nil {
		t.Fatal(err)
	}
	c := emulator.Dial(t, srv.Endpoint())
	for _, tc := range []struct {
		topic, data string
		want        codes.Code
	}{
		{topic, `{"a":1}`, codes.OK},
		{topic, "a", codes.InvalidArgument},
		{topic + "2", "a", codes.OK},
	} {
		_, err := c.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: tc.topic, Messages: []*pubsubpb.PubsubMessage{{Data: []byte(tc.data)}}})
		if status.Code(err) != tc.want {
			t.Errorf("publish %q: %v, want %v", tc.data, err, tc.want)
		}
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, nil, strings.NewReader(""), io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestRun_RefusesBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"extra"},
		{"--no-such-flag"},
		{"--publish=-1"},
		{"--publish=1", "--size=0"},
		{"--topic=nonsense"},
		{"--subscription=" + sub},
		{"--subscription=" + sub + "=" + topic},
		{"--addr=127.0.0.1:-1"},
		{"--stats-addr=127.0.0.1:-1"},
		{"--topic=" + topic, "--publish=1", "--size=10000000"},
		{"--delay=Publish"},
		{"--delay=Publish=-1s"},
		{"--delay=publish=1s"},
		{"--fail=Publish=NONSENSE"},
		{"--fail=Publish=OK"},
		{"--fail=Publish=UNAVAILABLE:2"},
		{"--fail=Publish=UNAVAILABLE:NaN"},
		{"--fail=GetTopic=UNAVAILABLE"},
		{"--json-only=" + topic},
	} {
		if err := run(t.Context(), args, strings.NewReader(""), io.Discard, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
