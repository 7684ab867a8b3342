package relay

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/replay"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

const (
	orderedSub  = "projects/p/subscriptions/ordered"
	otherTopic  = "projects/p/topics/other"
	lettersName = "projects/p/topics/letters"
)

// mustPublish publishes messages to the relay's input.
func mustPublish(t *testing.T, srv *pubsubtest.Server, msgs ...*pubsubio.Message) {
	t.Helper()
	if _, err := srv.Publish(inTopic, msgs...); err != nil {
		t.Fatal(err)
	}
}

func TestRelay_KeepsTheOrderOfKeys(t *testing.T) {
	srv := newServer(t)
	srv.MustCreateSubscription(orderedSub, inTopic, pubsubtest.Ordered())
	const keys, each = 5, 200
	for i := range each {
		for k := range keys {
			mustPublish(t, srv, &pubsubio.Message{Data: fmt.Appendf(nil, "%06d", i), OrderingKey: fmt.Sprint("k", k)})
		}
	}
	o := runRelay(t.Context(), t,
		"--emulator_endpoint="+srv.Endpoint(), "--input_subscriptions="+orderedSub, "--output_topic="+outTopic,
		"--ordering", fmt.Sprint("--max_messages=", keys*each))
	o.MustEnd(t, program.ExitDone)
	next := make(map[string]int)
	for _, m := range srv.Messages(outTopic) {
		// A copy may come again, and then all behind it: but nothing comes too early.
		n, err := strconv.Atoi(string(m.Data))
		if err != nil {
			t.Fatal(err)
		}
		if n > next[m.OrderingKey] {
			t.Fatalf("%d of %s came before %d", n, m.OrderingKey, next[m.OrderingKey])
		}
		next[m.OrderingKey] = max(next[m.OrderingKey], n+1)
	}
	for key, n := range next {
		if n != each {
			t.Errorf("%d of %s, want %d", n, key, each)
		}
	}
	if len(next) != keys {
		t.Errorf("%d keys", len(next))
	}
}

func TestRelay_OrderingNeedsAnOrderedSubscription(t *testing.T) {
	srv := newServer(t)
	o := runRelay(t.Context(), t, relayArgs(srv, "--ordering", "--max_messages=1")...)
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, inSub) || !strings.Contains(o.Stderr, "has no message ordering") {
		t.Errorf("stderr:\n%s", o.Stderr)
	}
}

func TestRelay_TakesTheTopicFromAnAttribute(t *testing.T) {
	srv := newServer(t)
	srv.MustCreateTopic(otherTopic)
	for i := range 300 {
		m := &pubsubio.Message{Data: fmt.Append(nil, i)}
		if i%3 == 0 {
			m.Attributes = map[string]string{"to": otherTopic}
		}
		mustPublish(t, srv, m)
	}
	o := runRelay(t.Context(), t, relayArgs(srv, "--output_topic_attribute=to", "--max_messages=300")...)
	o.MustEnd(t, program.ExitDone)
	if a, b := distinct(srv, outTopic), distinct(srv, otherTopic); a != 200 || b != 100 {
		t.Errorf("%d and %d arrived, want 200 and 100", a, b)
	}
}

// Nothing of the bundle is lost: it is returned, and the text says what to do. It once was
// "encode a record for projects/none/topics/none: encoder ...relay.republishRouted: ...": a
// topic that nobody named, a function, and no way out.
func TestRelay_AMessageWithoutATopicFailsIt(t *testing.T) {
	const wayOut = "; --failure_policy=drop drops such messages, --dead_letter_topic keeps them\n"
	for name, c := range map[string]struct {
		attributes map[string]string
		want       string
	}{
		"none":      {nil, `relay failed: message 1 has no attribute "to" to say its topic (--output_topic_attribute); --output_topic is for such messages` + wayOut},
		"malformed": {map[string]string{"to": "elsewhere"}, `relay failed: message 1: attribute "to" (--output_topic_attribute): topic "elsewhere": must have the form projects/<project>/topics/<id>` + wayOut},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			mustPublish(t, srv, &pubsubio.Message{Data: []byte("x"), Attributes: c.attributes})
			o := runRelay(t.Context(), t, "--emulator_endpoint="+srv.Endpoint(), "--input_subscriptions="+inSub,
				"--output_topic_attribute=to", "--max_messages=1")
			o.MustEnd(t, program.ExitFailed)
			if !strings.HasSuffix(o.Stderr, c.want) {
				t.Errorf("stderr:\n%s\nwant %s", o.Stderr, c.want)
			}
			if s := srv.Stats(inSub); s.Acknowledged != 0 {
				t.Errorf("%d acknowledged", s.Acknowledged)
			}
		})
	}
}

// publishSome publishes messages of which good say a topic, and two say none: one has no
// attribute, one has an ordering key and another text in it.
func publishSome(t *testing.T, srv *pubsubtest.Server, good int) {
	t.Helper()
	mustPublish(t, srv, &pubsubio.Message{Data: []byte("silent")})
	for i := range good {
		mustPublish(t, srv, &pubsubio.Message{Data: fmt.Append(nil, i), Attributes: map[string]string{"to": outTopic}})
	}
	mustPublish(t, srv, &pubsubio.Message{Data: []byte("lost"), Attributes: map[string]string{"to": "elsewhere", "k": "v"}, OrderingKey: "key"})
}

// The letters once held records in the coding of an internal package, which nobody could
// read, and the originals were acknowledged.
func TestRelay_AMessageWithoutATopicIsADeadLetterThatCanBeReplayed(t *testing.T) {
	const lettersSub = "projects/p/subscriptions/letters"
	srv := newServer(t)
	srv.MustCreateTopic(lettersName)
	srv.MustCreateSubscription(lettersSub, lettersName)
	publishSome(t, srv, 48)
	o := runRelay(t.Context(), t, "--emulator_endpoint="+srv.Endpoint(), "--input_subscriptions="+inSub,
		"--output_topic_attribute=to", "--dead_letter_topic="+lettersName, "--max_messages=50")
	o.MustEnd(t, program.ExitDone)
	if r := o.Report; r.Read != 50 || r.Published != 48 || r.Failed != 2 || r.Acknowledged != 50 {
		t.Errorf("report %+v", r)
	}
	letters := make(map[string]dlq.Entry)
	for _, m := range srv.Messages(lettersName) {
		e := dlq.Decode(m)
		if e.Message == nil {
			t.Fatalf("a letter holds no message: %+v", e)
		}
		letters[string(e.Message.Data)] = e
	}
	if e := letters["silent"]; e.Destination != "" || !strings.Contains(e.Error, `attribute "to"`) {
		t.Errorf("letter %+v", e)
	}
	e := letters["lost"]
	if len(letters) != 2 || e.Destination != "elsewhere" || !strings.Contains(e.Error, `topic "elsewhere": must have the form`) {
		t.Fatalf("%d letters, %+v", len(letters), e)
	}
	if m := e.Message; m.OrderingKey != "key" || m.Attributes["k"] != "v" || m.Attributes["to"] != "elsewhere" {
		t.Errorf("message %+v", m)
	}

	again := programtest.Execute[struct{}](t.Context(), t, replay.Run, "--emulator_endpoint="+srv.Endpoint(),
		"--dead_letter_subscription="+lettersSub, "--output_topic="+otherTopicOf(srv), "--stop_when_idle=1s")
	again.MustEnd(t, program.ExitDone)
	if n := distinct(srv, otherTopic); n != 2 {
		t.Errorf("%d replayed\n%s", n, again.Stdout)
	}
}

// otherTopicOf creates otherTopic.
func otherTopicOf(srv *pubsubtest.Server) string {
	srv.MustCreateTopic(otherTopic)
	return otherTopic
}

// A message is acknowledged no earlier than its letter is stored.
func TestRelay_AcknowledgesNoMessageBeforeItsLetterIsStored(t *testing.T) {
	srv := newServer(t)
	srv.MustCreateTopic(lettersName)
	srv.MustCreateSubscription("projects/p/subscriptions/letters", lettersName)
	srv.Delay("Publish", 20*time.Millisecond)
	publishSome(t, srv, 10)
	runRelay(t.Context(), t, "--emulator_endpoint="+srv.Endpoint(), "--input_subscriptions="+inSub,
		"--output_topic_attribute=to", "--dead_letter_topic="+lettersName, "--max_messages=12").MustEnd(t, program.ExitDone)
	stored := make(map[string]bool)
	acknowledged := 0
	for _, e := range srv.Events() {
		switch {
		case e.Kind == pubsubtest.Publish && e.Topic == lettersName:
			stored[string(dlq.Decode(e.Message()).Message.Data)] = true
		case e.Kind == pubsubtest.Publish && e.Topic == outTopic:
			stored[string(e.Message().Data)] = true
		case e.Kind == pubsubtest.Acknowledge:
			acknowledged++
			if data := string(e.Message().Data); !stored[data] {
				t.Fatalf("event %d acknowledges %q before it is stored", e.Seq, data)
			}
		}
	}
	if acknowledged != 12 {
		t.Errorf("%d acknowledged", acknowledged)
	}
}

func TestRelay_DropsAMessageWithoutATopicWhereItIsTold(t *testing.T) {
	srv := newServer(t)
	publishSome(t, srv, 8)
	o := runRelay(t.Context(), t, "--emulator_endpoint="+srv.Endpoint(), "--input_subscriptions="+inSub,
		"--output_topic_attribute=to", "--failure_policy=drop", "--max_messages=10")
	o.MustEnd(t, program.ExitDone)
	if r := o.Report; r.Read != 10 || r.Published != 8 || r.Failed != 2 || r.Acknowledged != 10 {
		t.Errorf("report %+v", r)
	}
	if want := "relay: dropped a message, 1 so far: message "; !strings.Contains(o.Stderr, want) {
		t.Errorf("stderr:\n%s\nwant %s", o.Stderr, want)
	}
}

func TestRelay_CreatesWhatIsMissingWhereItIsTold(t *testing.T) {
	srv := newServer(t)
	const newSub, newTopic = "projects/p/subscriptions/new", "projects/p/topics/new"
	args := []string{"--emulator_endpoint=" + srv.Endpoint(), "--input_subscriptions=" + newSub, "--output_topic=" + newTopic, "--stop_when_idle=500ms"}
	o := runRelay(t.Context(), t, args...)
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, newSub) {
		t.Errorf("stderr:\n%s", o.Stderr)
	}
	o = runRelay(t.Context(), t, append(args, "--create_topics", "--create_subscriptions="+inTopic)...)
	o.MustEnd(t, program.ExitDone)
	publish(t, srv, inTopic, 10)
	o = runRelay(t.Context(), t, append(args, "--create_topics", "--create_subscriptions="+inTopic)...)
	o.MustEnd(t, program.ExitDone)
	if n := distinct(srv, newTopic); n != 10 {
		t.Errorf("%d arrived", n)
	}
}

func TestRelay_BeginsWhereItIsTold(t *testing.T) {
	srv := newServer(t)
	srv.MustCreateSubscription("projects/p/subscriptions/retaining", inTopic, pubsubtest.RetainAcked())
	publish(t, srv, inTopic, 10)
	args := []string{"--emulator_endpoint=" + srv.Endpoint(), "--input_subscriptions=projects/p/subscriptions/retaining", "--output_topic=" + outTopic, "--stop_when_idle=1s"}
	for _, c := range []struct {
		position string
		moved    int64
	}{
		{"--start_position=latest", 0},
		{"--start_position=earliest", 10},
		{"--start_position=" + time.Now().Add(time.Hour).UTC().Format(time.RFC3339), 0},
		{"--start_position=2000-01-01T00:00:00+02:00", 10},
	} {
		o := runRelay(t.Context(), t, append(args, c.position)...)
		o.MustEnd(t, program.ExitDone)
		if o.Report.Acknowledged != c.moved {
			t.Errorf("%s: %d moved, want %d", c.position, o.Report.Acknowledged, c.moved)
		}
	}
}

func TestRelay_DisposesOfWhatCannotBePublished(t *testing.T) {
	for _, c := range []struct {
		args    []string
		code    int
		letters int
	}{
		{nil, program.ExitFailed, 0},
		{[]string{"--failure_policy=drop"}, program.ExitDone, 0},
		{[]string{"--dead_letter_topic=" + lettersName}, program.ExitDone, 1},
	} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			srv := newServer(t)
			srv.MustCreateTopic(lettersName)
			srv.MustCreateSubscription("projects/p/subscriptions/letters", lettersName)
			srv.Order(pubsubtest.Rule{Method: "Publish", Topic: outTopic, Attribute: "bad"},
				pubsubtest.Fail(status.Error(codes.InvalidArgument, "schema")))
			mustPublish(t, srv, &pubsubio.Message{Data: []byte("poison"), Attributes: map[string]string{"bad": "yes"}})
			publish(t, srv, inTopic, 99)
			o := runRelay(t.Context(), t, relayArgs(srv, append(c.args, "--max_messages=100")...)...)
			o.MustEnd(t, c.code)
			if c.code == program.ExitDone && distinct(srv, outTopic) != 99 {
				t.Errorf("%d arrived", distinct(srv, outTopic))
			}
			letters := srv.Messages(lettersName)
			if len(letters) != c.letters {
				t.Fatalf("%d letters, want %d", len(letters), c.letters)
			}
			for _, l := range letters {
				e := dlq.Decode(l)
				if e.Message == nil || string(e.Message.Data) != "poison" || e.Destination != outTopic || !strings.Contains(e.Error, "schema") {
					t.Errorf("letter %+v", e)
				}
			}
		})
	}
}
