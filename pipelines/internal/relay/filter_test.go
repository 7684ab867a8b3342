package relay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// publishRegions publishes n messages of three regions in turn, with ordering keys
// where keyed.
func publishRegions(t *testing.T, srv *pubsubtest.Server, n int, keyed bool) {
	t.Helper()
	for i := range n {
		m := &pubsubio.Message{Data: fmt.Appendf(nil, "%06d", i), Attributes: map[string]string{"region": []string{"eu-west", "eu-north", "us-east"}[i%3]}}
		if keyed {
			m.OrderingKey = "k"
		}
		mustPublish(t, srv, m)
	}
}

func TestFilter_MovesWhatMatchesAndAcknowledgesAll(t *testing.T) {
	for _, runner := range []string{"prism", "direct"} {
		t.Run(runner, func(t *testing.T) {
			srv := newServer(t)
			publishRegions(t, srv, 900, false)
			o := runRelay(t.Context(), t, relayArgs(srv, "--runner="+runner, `--filter=hasPrefix(attributes.region, "eu-")`, "--max_messages=900")...)
			o.MustEnd(t, program.ExitDone)
			if srv.Published(outTopic) != 600 || distinct(srv, outTopic) != 600 {
				t.Errorf("%d published", srv.Published(outTopic))
			}
			for _, m := range srv.Messages(outTopic) {
				if m.Attributes["region"] == "us-east" {
					t.Fatalf("%s passed", m.Data)
				}
			}
			if s := srv.Stats(inSub); s.Acknowledged != 900 || s.Outstanding != 0 {
				t.Errorf("%+v", s)
			}
			if r := o.Report; r.Read != 900 || r.Filtered != 300 || r.Published != 600 || r.Acknowledged != 900 {
				t.Errorf("report %+v", r)
			}
			if !strings.Contains(strings.Join(strings.Fields(o.Stdout), " "), "read 900 filtered 300 published 600") {
				t.Errorf("table:\n%s", o.Stdout)
			}
		})
	}
}

// --max_messages counts what was read: else a relay of which nothing matches would
// acknowledge all there is.
func TestFilter_LimitCountsWhatWasRead(t *testing.T) {
	srv := newServer(t)
	publishRegions(t, srv, 100, false)
	o := runRelay(t.Context(), t, relayArgs(srv, "--filter=attributes:nothing", "--max_messages=30")...)
	o.MustEnd(t, program.ExitDone)
	if s := srv.Stats(inSub); s.Acknowledged != 30 || s.Outstanding != 0 || srv.Published(outTopic) != 0 || o.Report.Filtered != 30 {
		t.Errorf("%+v, %d published, report %+v", s, srv.Published(outTopic), o.Report)
	}
}

// What does not match is acknowledged when its bundle has committed, as what does: a
// bundle that fails gives all back.
func TestFilter_AFailedBundleReturnsWhatDoesNotMatch(t *testing.T) {
	srv := newServer(t)
	mustPublish(t, srv, &pubsubio.Message{Data: []byte("first"), Attributes: map[string]string{"region": "eu"}})
	publish(t, srv, inTopic, 100)
	srv.Answer("Publish", status.Error(codes.InvalidArgument, "no"))
	o := runRelay(t.Context(), t, relayArgs(srv, "--filter=attributes:region", "--max_messages=101")...)
	o.MustEnd(t, program.ExitFailed)
	if s := srv.Stats(inSub); s.Acknowledged != 0 {
		t.Errorf("%+v", s)
	}
}

func TestFilter_KeepsTheOrderOfKeys(t *testing.T) {
	srv := newServer(t)
	srv.MustCreateSubscription(orderedSub, inTopic, pubsubtest.Ordered())
	publishRegions(t, srv, 600, true)
	o := runRelay(t.Context(), t,
		"--emulator_endpoint="+srv.Endpoint(), "--input_subscriptions="+orderedSub, "--output_topic="+outTopic,
		"--ordering", "--filter=-attributes.region=\"us-east\"", "--max_messages=600")
	o.MustEnd(t, program.ExitDone)
	var came []string
	for _, m := range srv.Messages(outTopic) {
		came = append(came, string(m.Data))
	}
	if !slices.IsSorted(came) || distinct(srv, outTopic) != 400 {
		t.Errorf("%d came, in order: %v", len(came), slices.IsSorted(came))
	}
}

// What would fail the relay does not, where it does not match: a message without a
// topic, or with an ordering key.
func TestFilter_ComesBeforeTopicsAndKeys(t *testing.T) {
	srv := newServer(t)
	srv.MustCreateTopic(otherTopic)
	mustPublish(t, srv,
		&pubsubio.Message{Data: []byte("moved"), Attributes: map[string]string{"to": otherTopic}},
		&pubsubio.Message{Data: []byte("without a topic")},
		&pubsubio.Message{Data: []byte("keyed"), OrderingKey: "k", Attributes: map[string]string{"to": "nowhere"}})
	o := runRelay(t.Context(), t, "--emulator_endpoint="+srv.Endpoint(), "--input_subscriptions="+inSub,
		"--output_topic_attribute=to", `--filter=attributes.to = "`+otherTopic+`"`, "--max_messages=3")
	o.MustEnd(t, program.ExitDone)
	srv.WantPublished(t, otherTopic, "moved")
	if o.Report.Filtered != 2 || srv.Stats(inSub).Acknowledged != 3 {
		t.Errorf("report %+v", o.Report)
	}
}

// A subscription keeps its filter for ever, and the next relay may have another.
func TestFilter_IsNotThatOfACreatedSubscription(t *testing.T) {
	srv := newServer(t)
	const sub = "projects/p/subscriptions/new"
	args := []string{"--emulator_endpoint=" + srv.Endpoint(), "--input_subscriptions=" + sub, "--output_topic=" + outTopic, "--create_subscriptions=" + inTopic}
	runRelay(t.Context(), t, append(args, "--filter=attributes:region", "--stop_when_idle=200ms")...).MustEnd(t, program.ExitDone)
	publishRegions(t, srv, 9, false)
	publish(t, srv, inTopic, 20)
	o := runRelay(t.Context(), t, append(args, "--filter=NOT attributes:region", "--max_messages=29")...)
	o.MustEnd(t, program.ExitDone)
	if s := srv.Stats(sub); s.Filtered != 0 || s.Acknowledged != 29 || distinct(srv, outTopic) != 20 {
		t.Errorf("%+v, %d arrived", s, distinct(srv, outTopic))
	}
}

func TestFilter_DryRunSaysWhatIsGone(t *testing.T) {
	srv := newServer(t)
	o := runRelay(t.Context(), t, relayArgs(srv, "--dry_run", "--filter=attributes:region")...)
	o.MustEnd(t, program.ExitDone)
	said := strings.Join(strings.Fields(o.Stdout), " ")
	if want := "filter attributes:region what does not match is acknowledged and not published: it is gone for these subscriptions"; !strings.Contains(said, want) {
		t.Errorf("printed:\n%s\nwant %s", o.Stdout, want)
	}
}

// A worker makes the DoFn anew from its JSON, and a bad expression is an error there,
// too.
func TestFilterFn_TravelsAsJSON(t *testing.T) {
	sent, err := json.Marshal(&filterFn{Expression: `attributes.a = "b"`, Nonce: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	defer tallies.Delete(t.Name())
	var fn filterFn
	if err := json.Unmarshal(sent, &fn); err != nil {
		t.Fatal(err)
	}
	if err := fn.Setup(); err != nil {
		t.Fatal(err)
	}
	var passed []string
	for _, a := range []string{"a", "b", "c"} {
		m := &pubsubio.Message{Attributes: map[string]string{"a": a}}
		err := fn.ProcessElement(t.Context(), m, func(m *pubsubio.Message) { passed = append(passed, m.Attributes["a"]) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(passed, []string{"b"}) || tallyOf(t.Name()).filtered.Load() != 2 {
		t.Errorf("passed %q, kept back %d", passed, tallyOf(t.Name()).filtered.Load())
	}
	bad := filterFn{Expression: "attributes."}
	if err := bad.Setup(); err == nil || !strings.Contains(err.Error(), "relay: --filter attributes.: at its end: a key must be") {
		t.Error(err)
	}
}

func BenchmarkFilterFn(b *testing.B) {
	fn := filterFn{Expression: `attributes.event = "order.paid" AND NOT hasPrefix(attributes.region, "us-")`, Nonce: b.Name()}
	if err := fn.Setup(); err != nil {
		b.Fatal(err)
	}
	m := &pubsubio.Message{Attributes: map[string]string{"event": "order.paid", "region": "us-east"}}
	b.ReportAllocs()
	for b.Loop() {
		if err := fn.ProcessElement(b.Context(), m, func(*pubsubio.Message) { b.Fatal("passed") }); err != nil {
			b.Fatal(err)
		}
	}
}
