package relay

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func TestEmbedded_RelaysAndChecksEveryMessage(t *testing.T) {
	for _, runner := range []string{"prism", "direct", "PrismRunner", "DirectRunner"} {
		t.Run(runner, func(t *testing.T) {
			o := runRelay(t.Context(), t, "--embedded", "--embedded_messages=3000", "--runner="+runner)
			o.MustEnd(t, program.ExitDone)
			said := strings.Join(strings.Fields(o.Stdout), " ")
			for _, want := range []string{"sent 3,000 read 3,000 filtered 0 published 3,000", "published 3,000 skipped 0", "acknowledged 3,000 returned 0", "arrived 3,000 arrived again 0", "every message arrived and was acknowledged"} {
				if !strings.Contains(said, want) {
					t.Errorf("no %q in:\n%s", want, o.Stdout)
				}
			}
			if o.Report.Published != 3000 || o.Report.Acknowledged != 3000 {
				t.Errorf("report %+v", o.Report)
			}
		})
	}
}

// The README shows what the program prints: all but the measured figures, and the
// width of the columns, which is that of the longest of them.
func TestEmbedded_PrintsWhatTheReadmeShows(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "$ go run ./pipelines/relay --embedded\n")
	shown, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the README does not show the command")
	}
	o := runRelay(t.Context(), t, "--embedded")
	o.MustEnd(t, program.ExitDone)
	measured := regexp.MustCompile(`(seconds|messages/second) +[0-9.,]+`)
	width := regexp.MustCompile(` +`)
	table := func(s string) string { return width.ReplaceAllString(measured.ReplaceAllString(s, "$1"), " ") }
	if got, want := table(o.Stdout), table(shown); got != want {
		t.Errorf("printed:\n%sthe README shows:\n%s", got, want)
	}
}

// More than the feed runs ahead: the backlog stays bounded, the end is reached.
func TestEmbedded_FeedsWhileItRelays(t *testing.T) {
	n := 2*feedAhead + 1
	srv, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	check, err := startVerifier(t.Context(), srv, n)
	if err != nil {
		t.Fatal(err)
	}
	program.InitBeam()
	r, err := relayEmbedded(t.Context(), settings{embeddedMessages: n}, srv, program.NewConsole(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	v := check.finish(t.Context())
	if err := v.err(false); err != nil || v.arrived != int64(n) || r.Published != int64(n) {
		t.Errorf("%+v, %+v, %v", v, r, err)
	}
}

// checked publishes to the output topic what a relay of n messages might have,
// acknowledges of the input what it might have, and returns the verdict.
func checked(t *testing.T, n int, publish func(order func(int) *pubsubio.Message) []*pubsubio.Message) *verdict {
	t.Helper()
	srv, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	v, err := startVerifier(t.Context(), srv, n)
	if err != nil {
		t.Fatal(err)
	}
	var book orderBook
	order := func(i int) *pubsubio.Message {
		m, err := book.message(i)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if _, err := srv.Publish(outputTopic, publish(order)...); err != nil {
		t.Fatal(err)
	}
	out := v.finish(t.Context())
	out.acknowledged = int64(n)
	return out
}

// A count cannot tell: as many messages came out as went in.
func TestVerifier_CopyDoesNotHideALostMessage(t *testing.T) {
	v := checked(t, 5, func(order func(int) *pubsubio.Message) []*pubsubio.Message {
		return []*pubsubio.Message{order(0), order(1), order(1), order(4), order(2)}
	})
	if v.arrived != 4 || v.again != 1 || v.foreign != 0 {
		t.Errorf("%+v", v)
	}
	if err := v.err(false); err == nil || err.Error() != "1 of 5 messages did not arrive, the first of them numbers [3]" {
		t.Errorf("verdict: %v", err)
	}
}

func TestVerifier_CopyAloneIsNoFault(t *testing.T) {
	v := checked(t, 2, func(order func(int) *pubsubio.Message) []*pubsubio.Message {
		return []*pubsubio.Message{order(0), order(1), order(0)}
	})
	if err := v.err(false); err != nil || v.again != 1 {
		t.Errorf("%+v: %v", v, err)
	}
}

func TestVerifier_FindsDamagedMessages(t *testing.T) {
	v := checked(t, 3, func(order func(int) *pubsubio.Message) []*pubsubio.Message {
		cut, swapped, stranger := order(0), order(1), order(3)
		cut.Data = cut.Data[1:]
		swapped.Data = order(2).Data
		return []*pubsubio.Message{cut, swapped, stranger, order(2)}
	})
	if v.arrived != 1 || v.foreign != 3 {
		t.Errorf("%+v", v)
	}
	if err := v.err(false); err == nil || !strings.Contains(err.Error(), "3 messages arrived damaged") {
		t.Errorf("verdict: %v", err)
	}
}

// A payload that is whole says nothing of the attributes.
func TestVerifier_FindsDamagedAttributes(t *testing.T) {
	for name, damage := range map[string]func(map[string]string){
		"lost":     func(a map[string]string) { delete(a, "region") },
		"changed":  func(a map[string]string) { a["region"] += "-1" },
		"swapped":  func(a map[string]string) { a["event"], a["region"] = a["region"], a["event"] },
		"added":    func(a map[string]string) { a["more"] = "" },
		"renamed":  func(a map[string]string) { a["regio"] = "n" + a["region"]; delete(a, "region") },
		"reserved": func(a map[string]string) { a["googclient_schemaencoding"] = "JSON" },
	} {
		t.Run(name, func(t *testing.T) {
			var book orderBook
			m, err := book.message(0)
			if err != nil {
				t.Fatal(err)
			}
			v := &verifier{n: 1, seen: newNumberSet(1)}
			damaged := maps.Clone(m.Attributes)
			damage(damaged)
			v.tick(&pubsubpb.PubsubMessage{Data: m.Data, Attributes: damaged})
			if v.foreign != 1 || v.arrived != 0 {
				t.Errorf("%v passes for %v", damaged, m.Attributes)
			}
			v.tick(&pubsubpb.PubsubMessage{Data: m.Data, Attributes: m.Attributes})
			if v.foreign != 1 || v.arrived != 1 {
				t.Errorf("%v is a fault", m.Attributes)
			}
		})
	}
}

// interruptedAfter is the verdict on a relay of five messages that was interrupted
// when the first few were acknowledged and those had arrived.
func interruptedAfter(t *testing.T, acknowledged int32, arrived ...int) *verdict {
	t.Helper()
	srv, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	f := feed{srv: srv, total: 9}
	if err := f.publish(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	v, err := startVerifier(t.Context(), srv, f.total)
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.client.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: inputSubscription, MaxMessages: acknowledged})
	if err != nil || len(got.GetReceivedMessages()) != int(acknowledged) {
		t.Fatal(err, got)
	}
	ack := &pubsubpb.AcknowledgeRequest{Subscription: inputSubscription}
	for _, m := range got.GetReceivedMessages() {
		ack.AckIds = append(ack.AckIds, m.GetAckId())
	}
	if _, err := v.client.Acknowledge(t.Context(), ack); err != nil {
		t.Fatal(err)
	}
	for _, i := range arrived {
		m, err := f.book.message(i)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := srv.Publish(outputTopic, m); err != nil {
			t.Fatal(err)
		}
	}
	return v.finish(t.Context())
}

// As many arrived as were acknowledged, and yet one is gone: it takes the messages
// themselves to tell.
func TestVerifier_InterruptedFindsWhatWasAcknowledgedAndIsGone(t *testing.T) {
	v := interruptedAfter(t, 3, 0, 1, 1, 3)
	if err := v.err(true); err == nil || err.Error() != "1 messages were acknowledged and did not arrive, the first of them numbers [2]" {
		t.Errorf("%+v: %v", v, err)
	}
}

// What was published, and returned because its bundle did not commit, would have
// come again: that is at least once.
func TestVerifier_InterruptedBeforeACopyIsNoFault(t *testing.T) {
	v := interruptedAfter(t, 2, 1, 0, 2, 3, 3)
	if err := v.err(true); err != nil || v.arrived != 4 || v.acknowledged != 2 || v.lost != 0 {
		t.Errorf("%+v: %v", v, err)
	}
}

func TestEmbedded_InterruptedIsCheckedToo(t *testing.T) {
	srv, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	const n = 100_000
	check, err := startVerifier(t.Context(), srv, n)
	if err != nil {
		t.Fatal(err)
	}
	program.InitBeam()
	ctx, interrupt := context.WithCancel(t.Context())
	go func() { // Ends with the test at the latest.
		if srv.AwaitPublished(t.Context(), outputTopic, 5000) == nil {
			interrupt()
		}
	}()
	_, err = relayEmbedded(ctx, settings{embeddedMessages: n}, srv, program.NewConsole(t.Output()))
	if !errors.Is(err, pubsubio.ErrStopped) {
		t.Fatal(err)
	}
	v := check.finish(ctx)
	if err := v.err(true); err != nil || v.arrived < 5000 || v.arrived == n {
		t.Errorf("%+v: %v", v, err)
	}
}

func TestVerifier_TellsWhenItCannotRead(t *testing.T) {
	srv, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if err := srv.DeleteSubscription(checkSubscription); err != nil {
		t.Fatal(err)
	}
	v, err := startVerifier(t.Context(), srv, 1)
	if err != nil {
		t.Fatal(err)
	}
	<-v.ended
	if err := v.finish(t.Context()).err(false); err == nil || !strings.Contains(err.Error(), "checking what arrived: ") {
		t.Errorf("verdict: %v", err)
	}
}

func TestVerdict_Faults(t *testing.T) {
	for name, tc := range map[string]struct {
		verdict     verdict
		interrupted bool
		want        string // empty: none
	}{
		"all there":                       {verdict{sent: 3, arrived: 3, acknowledged: 3, again: 1}, false, ""},
		"not acknowledged":                {verdict{sent: 3, arrived: 3, acknowledged: 1}, false, "2 of 3 messages were not acknowledged"},
		"held":                            {verdict{sent: 3, arrived: 3, acknowledged: 3, outstanding: 1}, false, "1 messages were neither acknowledged nor returned"},
		"interrupted":                     {verdict{sent: 3, arrived: 2, acknowledged: 2}, true, ""},
		"interrupted, lost":               {verdict{sent: 3, arrived: 2, acknowledged: 2, lost: 1}, true, "1 messages were acknowledged and did not arrive"},
		"interrupted, arrives once more":  {verdict{sent: 3, arrived: 3, acknowledged: 2}, true, ""},
		"interrupted with messages held":  {verdict{sent: 3, outstanding: 2}, true, "2 messages were neither"},
		"damaged although all have come":  {verdict{sent: 3, arrived: 3, acknowledged: 3, foreign: 1}, false, "1 messages arrived damaged"},
		"checked in part, so nothing can": {verdict{sent: 1, arrived: 1, acknowledged: 1, failure: pubsubtestError()}, false, "checking what arrived"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.verdict.err(tc.interrupted)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func pubsubtestError() error {
	_, err := pubsubtest.Start(pubsubtest.Config{Addr: "nowhere"})
	return err
}

func TestOrderBook_WritesTheSameOrdersAgain(t *testing.T) {
	var first, second orderBook
	sizes, ids := make(map[int]bool), make(map[string]bool)
	total := 0
	for i := range 2000 {
		m, err := first.message(i)
		if err != nil {
			t.Fatal(err)
		}
		sizes[len(m.Data)], ids[string(m.Data)] = true, true
		total += len(m.Data)
		if i%100 != 0 {
			continue
		}
		again, err := second.message(i)
		if err != nil || string(again.Data) != string(m.Data) || again.Attributes[checksumAttribute] != m.Attributes[checksumAttribute] {
			t.Fatalf("order %d: %s then %s, %v", i, m.Data, again.Data, err)
		}
	}
	if len(ids) != 2000 || len(sizes) < 100 || total/2000 < 200 || total/2000 > 1000 {
		t.Errorf("%d different orders of %d different sizes, %d bytes on average", len(ids), len(sizes), total/2000)
	}
}

func TestRepublish_StripsWhatTheServiceWouldRefuse(t *testing.T) {
	for name, encode := range map[string]func(*pubsubio.Message) (*pubsubio.Message, error){
		"republish": republish, "republishWithoutKey": republishWithoutKey,
	} {
		received := &pubsubio.Message{
			ID:   "17",
			Data: []byte("data"),
			Attributes: map[string]string{
				"kept": "yes", "googclient_schemaencoding": "JSON", "GOOG_x": "y", "googclient_traceparent": "00-1",
			},
		}
		m, err := encode(received)
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Data) != "data" || len(m.Attributes) != 2 || m.Attributes["kept"] != "yes" || m.Attributes["googclient_traceparent"] != "00-1" {
			t.Errorf("%s: %+v", name, m)
		}
		if len(received.Attributes) != 4 {
			t.Errorf("%s: the received message was changed: %v", name, received.Attributes)
		}
	}
}

func TestRepublish_OrderingKey(t *testing.T) {
	received := &pubsubio.Message{Data: []byte("data"), OrderingKey: "key"}
	// The sink refuses it, unless it keeps the order of keys.
	if m, err := republish(received); err != nil || m.OrderingKey != "key" {
		t.Errorf("%+v, %v", m, err)
	}
	m, err := republishWithoutKey(received)
	if err != nil || m.OrderingKey != "" || string(m.Data) != "data" || received.OrderingKey != "key" {
		t.Errorf("%+v of %+v, %v", m, received, err)
	}
}
