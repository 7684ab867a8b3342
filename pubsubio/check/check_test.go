package check_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

const (
	in      = "projects/p/topics/input"
	sub     = "projects/p/subscriptions/input"
	out     = "projects/p/topics/output"
	outSub  = "projects/p/subscriptions/output"
	letters = "projects/p/topics/letters"
	nowhere = "projects/p/topics/nowhere"
)

// newServer has in with sub, out with outSub, and letters with a subscription.
func newServer(t *testing.T) *pubsubtest.Server {
	t.Helper()
	srv := pubsubtest.New(t)
	for _, name := range []string{in, out, letters} {
		srv.MustCreateTopic(name)
		srv.MustCreateSubscription(strings.Replace(name, "topics", "subscriptions", 1), name)
	}
	return srv
}

// run checks configurations against srv, which their connection is set to.
func run(t *testing.T, endpoint string, c check.Configs) check.Report {
	t.Helper()
	for i := range c.Sources {
		c.Sources[i].EmulatorEndpoint = endpoint
	}
	for i := range c.Sinks {
		c.Sinks[i].EmulatorEndpoint = endpoint
	}
	for i := range c.Queues {
		c.Queues[i].EmulatorEndpoint = endpoint
	}
	r, err := check.Run(t.Context(), c, check.Options{Member: "user:jo@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func reads(c source.Config) check.Configs {
	if c.Subscriptions == nil {
		c.Subscriptions = source.From(sub)
	}
	return check.Configs{Sources: []source.Config{c}}
}

func writes(c sink.Config) check.Configs {
	if c.Topic == "" && c.Resolve == (sink.Resolver{}) {
		c.Topic = out
	}
	return check.Configs{Sinks: []sink.Config{c}}
}

// lines are what a report says, a line for each thing: states, permissions, findings and
// commands.
func lines(r check.Report) string {
	var b strings.Builder
	finding := func(f check.Finding) {
		fmt.Fprintf(&b, "  %s: %s", f.Level, f.Text)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "; %s", f.Remedy)
		}
		fmt.Fprintln(&b)
		for _, c := range f.Commands {
			fmt.Fprintln(&b, "    $", c)
		}
	}
	for _, f := range r.Settings {
		finding(f)
	}
	for _, res := range r.Resources {
		fmt.Fprintf(&b, "%s %s %s\n", res.Kind, res.Name, res.State)
		for _, p := range res.Permissions {
			fmt.Fprintf(&b, "  %s %s", p.Name, p.Status)
			if p.Command != "" {
				fmt.Fprintf(&b, "\n    $ %s", p.Command)
			}
			fmt.Fprintln(&b)
		}
		for _, f := range res.Findings {
			finding(f)
		}
	}
	return b.String()
}

func TestRun_AllWell(t *testing.T) {
	srv := newServer(t)
	queue := dlq.Config{Topic: letters, EmulatorEndpoint: srv.Endpoint()}
	r := run(t, srv.Endpoint(), check.Configs{
		Sources: []source.Config{{Subscriptions: source.From(sub), OnDecodeFailure: source.SendTo(queue)}},
		Sinks:   []sink.Config{{Topic: out, OnFailure: sink.SendTo(&queue)}},
		Queues:  []dlq.Config{queue},
	})
	want := `subscription projects/p/subscriptions/input exists
  pubsub.subscriptions.consume granted
  pubsub.subscriptions.get granted
topic projects/p/topics/letters exists
  pubsub.topics.publish granted
  pubsub.topics.get granted
topic projects/p/topics/output exists
  pubsub.topics.publish granted
topic projects/p/topics/input exists
`
	if got := lines(r); got != want || !r.Clean() || r.Err() != nil {
		t.Errorf("clean %t, %v, got:\n%swant:\n%s", r.Clean(), r.Err(), got, want)
	}
	wantUses := []check.Use{
		{Field: "source.Config.OnDecodeFailure", What: "sent dead letters"},
		{Field: "sink.Config.OnFailure", What: "sent dead letters"},
		{Field: "dlq.Config.Topic", What: "sent dead letters"},
	}
	if got := r.Resources[0].Topic; got != in {
		t.Errorf("topic %s", got)
	}
	if got := r.Resources[1].Uses; !reflect.DeepEqual(got, wantUses) {
		t.Errorf("uses %v", got)
	}
}

// Each kind of finding, by what is done to the service or to the configuration.
func TestRun_EachFinding(t *testing.T) {
	option := func(o pubsubtest.SubscriptionOption) func(*testing.T, *pubsubtest.Server) {
		return func(t *testing.T, srv *pubsubtest.Server) {
			t.Helper()
			if err := srv.DeleteSubscription(sub); err != nil {
				t.Fatal(err)
			}
			srv.MustCreateSubscription(sub, in, o)
		}
	}
	create := func(c options.SubscriptionCreate) source.Config {
		if c.Topic == "" {
			c.Topic = in
		}
		return source.Config{Subscriptions: []source.Subscription{{Name: "projects/p/subscriptions/new", Create: &c}}}
	}
	for name, c := range map[string]struct {
		set     func(*testing.T, *pubsubtest.Server)
		configs check.Configs
		want    []string // lines, each of which must be there
		fine    bool     // there is nothing to mend
		runs    bool     // there is no fault
	}{
		"a fault of Validate": {configs: reads(source.Config{Splits: 2, Ordering: options.PerKey}), want: []string{
			"  fault: source.Config.Splits: 2: must be 1 beside Ordering options.PerKey: the messages of a key come over one stream",
		}},
		"a malformed name": {configs: writes(sink.Config{Topic: "out"}), want: []string{
			`  fault: sink.Config.Topic: topic "out": must have the form projects/<project>/topics/<id>`,
		}},
		"faults of a second configuration": {configs: check.Configs{Sinks: []sink.Config{{Topic: out}, {Topic: "out"}}}, want: []string{
			`  fault: sink.Config[1].Topic: topic "out": must have the form projects/<project>/topics/<id>`,
		}},
		"a queue's fault": {configs: check.Configs{Queues: []dlq.Config{{Topic: letters, MaxInFlightMessages: -7}}}, want: []string{
			"  fault: dlq.Config.MaxInFlightMessages: -7: must be positive, dlq.WriteThrough or dlq.Unbounded",
		}},
		"dead letters to the sink's own topic": {configs: writes(sink.Config{OnFailure: sink.SendTo(dlq.Config{Topic: out})}), want: []string{
			`  fault: sink.Config.OnFailure: sink.SendTo(dlq.Config) to "projects/p/topics/output": must go to another topic than Topic, which refused the record and could refuse its letter, or bring it round again`,
		}},
		"no subscription": {configs: reads(source.Config{Subscriptions: source.From("projects/p/subscriptions/none")}), want: []string{
			"subscription projects/p/subscriptions/none does not exist",
			"  pubsub.subscriptions.consume unknown",
			"  fault: does not exist; create it with gcloud pubsub subscriptions create none --project=p --topic=TOPIC",
			"    $ gcloud pubsub subscriptions create none --project=p --topic=TOPIC",
		}},
		"no topic": {configs: writes(sink.Config{Topic: nowhere, CreateDisposition: options.CreateNever}), want: []string{
			"topic projects/p/topics/nowhere does not exist",
			"  fault: does not exist; create it with gcloud pubsub topics create nowhere --project=p",
			"    $ gcloud pubsub topics create nowhere --project=p",
		}},
		"a topic that will be created": {fine: true, runs: true, configs: writes(sink.Config{Topic: nowhere}), want: []string{
			"topic projects/p/topics/nowhere does not exist and will be created",
			"  pubsub.topics.publish unknown",
			"  pubsub.topics.create unknown",
			"  note: will have no subscription when it is created: who subscribes later does not get what is published before",
		}},
		"a subscription that will be created": {fine: true, runs: true, configs: reads(create(options.SubscriptionCreate{})), want: []string{
			"subscription projects/p/subscriptions/new does not exist and will be created",
			"  pubsub.subscriptions.create unknown",
			"topic projects/p/topics/input exists",
			"  pubsub.topics.attachSubscription granted",
		}},
		"a subscription of no topic": {configs: reads(create(options.SubscriptionCreate{Topic: nowhere})), want: []string{
			"topic projects/p/topics/nowhere does not exist",
			"  fault: does not exist, so that no subscription of it can be created; create it with gcloud pubsub topics create nowhere --project=p",
		}},
		"a subscription whose dead-letter topic is missing": {configs: reads(create(options.SubscriptionCreate{DeadLetterPolicy: &options.DeadLetterPolicy{Topic: nowhere}})), want: []string{
			"  fault: does not exist, so that projects/p/subscriptions/new, whose dead letters it is to get, cannot be created; create it with gcloud pubsub topics create nowhere --project=p, and a subscription of it",
			"    $ gcloud pubsub topics create nowhere --project=p",
			"    $ gcloud pubsub subscriptions create nowhere --project=p --topic=projects/p/topics/nowhere --expiration-period=never",
		}},
		"a subscription of the pipeline's own": {fine: true, runs: true, configs: reads(source.Config{Subscriptions: source.FromTopic("p", in)}), want: []string{
			"  pubsub.subscriptions.delete unknown",
			"  pubsub.subscriptions.create unknown",
		}},
		"detached": {set: detach, configs: reads(source.Config{}), want: []string{
			"  fault: is detached from its topic: it holds no messages and gets none; create another subscription and read that",
			"    $ gcloud pubsub subscriptions create input-pull --project=p --topic=projects/p/topics/input",
		}},
		"its topic is deleted": {set: func(t *testing.T, srv *pubsubtest.Server) {
			t.Helper()
			if err := srv.DeleteTopic(in); err != nil {
				t.Fatal(err)
			}
		}, configs: reads(source.Config{}), want: []string{
			"  fault: its topic is deleted: it gets no messages any more, also if a topic of that name is created; create another subscription and read that",
		}},
		"push": {set: option(func(s *pubsubpb.Subscription) {
			s.PushConfig = &pubsubpb.PushConfig{PushEndpoint: "https://example.com"}
		}), configs: reads(source.Config{}), want: []string{
			"  fault: delivers by push, so that nothing can be pulled from it; read a subscription that delivers by pull",
		}},
		"export": {set: option(func(s *pubsubpb.Subscription) { s.BigqueryConfig = &pubsubpb.BigQueryConfig{Table: "p.d.t"} }), configs: reads(source.Config{}), want: []string{
			"  fault: delivers by export to BigQuery, so that nothing can be pulled from it; read a subscription that delivers by pull",
		}},
		"exactly once": {set: option(pubsubtest.ExactlyOnce()), configs: reads(source.Config{}), want: []string{
			"  fault: has exactly-once delivery, with which the service refuses acknowledgements that come late, as a runner's commit may; turn it off with gcloud pubsub subscriptions update --no-enable-exactly-once-delivery",
			"    $ gcloud pubsub subscriptions update input --project=p --no-enable-exactly-once-delivery",
		}},
		"no order": {configs: reads(source.Config{Ordering: options.PerKey}), want: []string{
			"  fault: has no message ordering, which Ordering options.PerKey needs and which cannot be added; create another subscription with options.SubscriptionCreate.EnableMessageOrdering, or read with options.Unordered",
			"    $ gcloud pubsub subscriptions create input-ordered --project=p --topic=projects/p/topics/input --enable-message-ordering",
		}},
		"Nack without a dead-letter policy": {configs: reads(source.Config{OnDecodeFailure: source.Nack()}), want: []string{
			"    $ gcloud pubsub subscriptions update input --project=p --dead-letter-topic=projects/p/topics/input-dead-letters",
		}},
		"dead letters to the own topic": {configs: reads(source.Config{OnDecodeFailure: source.SendTo(dlq.Config{Topic: in})}), want: []string{
			"  fault: its topic is that of the dead-letter queue of OnDecodeFailure, so that what cannot be decoded would come again for ever, as its own dead letter; send dead letters to another topic than projects/p/topics/input",
		}},
		"no dead-letter topic": {configs: check.Configs{Queues: []dlq.Config{{Topic: nowhere}}}, want: []string{
			"  fault: does not exist, and the queue never creates it, for nothing would be consuming it; create it with gcloud pubsub topics create nowhere --project=p, and a subscription of it",
		}},
		"a dead-letter topic that nobody reads": {runs: true, set: func(_ *testing.T, srv *pubsubtest.Server) { srv.MustCreateTopic(nowhere) }, configs: check.Configs{Queues: []dlq.Config{{Topic: nowhere}}}, want: []string{
			"  warning: has no subscription, so that every dead letter is lost; create one with gcloud pubsub subscriptions create NAME --topic=projects/p/topics/nowhere",
			"    $ gcloud pubsub subscriptions create nowhere --project=p --topic=projects/p/topics/nowhere --expiration-period=never",
		}},
		"a topic that nobody reads": {fine: true, runs: true, set: func(_ *testing.T, srv *pubsubtest.Server) { srv.MustCreateTopic(nowhere) }, configs: writes(sink.Config{Topic: nowhere}), want: []string{
			"  note: has no subscription: who subscribes later does not get what is published before",
		}},
		"a filter": {fine: true, runs: true, set: option(pubsubtest.Filter("attributes:region")), configs: reads(source.Config{}), want: []string{
			"  note: has the filter attributes:region: the service acknowledges what does not match, and nobody reads it",
		}},
		"a dead-letter policy": {fine: true, runs: true, set: option(pubsubtest.DeadLetters(letters, 7)), configs: reads(source.Config{OnDecodeFailure: source.Nack()}), want: []string{
			"  note: forwards to projects/p/topics/letters what was delivered 7 times, for which the service's own account needs grants that cannot be asked for here; if messages are delivered more often than that, grant them",
		}},
		"a dead-letter policy to nowhere": {runs: true, set: option(pubsubtest.DeadLetters(nowhere, 5)), configs: reads(source.Config{}), want: []string{
			"  warning: does not exist, so that projects/p/subscriptions/input forwards nothing to it; create it with gcloud pubsub topics create nowhere --project=p, and a subscription of it",
		}},
		"a dead-letter policy in a circle": {runs: true, set: option(pubsubtest.DeadLetters(in, 5)), configs: reads(source.Config{}), want: []string{
			"  warning: is the topic of projects/p/subscriptions/input, which is read: what projects/p/subscriptions/input gives up comes to it again; forward it to another topic",
		}},
		"a position before what is kept": {fine: true, runs: true, configs: reads(source.Config{StartPosition: options.EarliestRetained()}), want: []string{
			"  note: keeps no acknowledged messages, so that StartPosition options.EarliestRetained() finds only those that are not acknowledged; to have it keep them from now on, update it",
			"    $ gcloud pubsub subscriptions update input --project=p --retain-acked-messages",
		}},
		"a position before what is retained": {fine: true, runs: true, set: option(pubsubtest.RetainAcked()), configs: reads(source.Config{StartPosition: options.FromTimestamp(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))}), want: []string{
			"  note: keeps acknowledged messages for 168h0m0s, less than StartPosition options.FromTimestamp(2020-01-01T00:00:00Z) goes back",
		}},
		"another topic than that of Create": {runs: true, configs: reads(source.Config{Subscriptions: []source.Subscription{{Name: sub, Create: &options.SubscriptionCreate{Topic: out, Filter: "attributes:a"}}}}), want: []string{
			"  warning: is one of projects/p/topics/input, and not of projects/p/topics/output as Create says: what is there already stays as it is; read another subscription, or name that topic",
			`  warning: has not the filter "attributes:a" that Create says: what is there already stays as it is; read another subscription, or name its filter`,
		}},
		"a circle": {runs: true, configs: check.Configs{Sources: []source.Config{{Subscriptions: source.From(sub)}}, Sinks: []sink.Config{{Topic: in}}}, want: []string{
			"  warning: is the topic of projects/p/subscriptions/input, which is read: what is published to it is read again, for ever unless the pipeline stops it; publish to another topic, or read a subscription of another one",
		}},
		"dead letters in a circle": {runs: true, configs: check.Configs{Sources: []source.Config{{Subscriptions: source.From(sub)}}, Queues: []dlq.Config{{Topic: in}}}, want: []string{
			"  warning: is the topic of projects/p/subscriptions/input, which is read: its dead letters are read again; send them to another topic",
		}},
		"dead letters that are sent back where some are chosen from": {fine: true, runs: true, configs: check.Configs{
			Sources: []source.Config{{Subscriptions: source.From(sub), OnDecodeFailure: source.Leave()}}, Queues: []dlq.Config{{Topic: in}},
		}, want: []string{"  pubsub.topics.publish granted"}},
		"topics that a function chooses": {fine: true, runs: true, configs: writes(sink.Config{Resolve: sink.ResolveWith(chosen)}), want: []string{
			"  note: sink.Config.Resolve: the topics are not known before the pipeline runs, for github.com/beam-pubsub/beam-pubsub-go/pubsubio/check_test.chosen chooses that of each record; the account needs pubsub.topics.publish on each of them, as roles/pubsub.publisher has it, and pubsub.topics.create on the project of each that is missing, as roles/pubsub.editor has it",
		}},
		"no permission to read": {set: func(_ *testing.T, srv *pubsubtest.Server) { srv.Deny("StreamingPull", sub) }, configs: reads(source.Config{}), want: []string{
			"  pubsub.subscriptions.consume missing",
			"    $ gcloud pubsub subscriptions add-iam-policy-binding input --project=p --member=user:jo@example.com --role=roles/pubsub.subscriber",
		}},
		"no permission to publish": {set: func(_ *testing.T, srv *pubsubtest.Server) { srv.Deny("Publish", out) }, configs: writes(sink.Config{}), want: []string{
			"  pubsub.topics.publish missing",
			"    $ gcloud pubsub topics add-iam-policy-binding output --project=p --member=user:jo@example.com --role=roles/pubsub.publisher",
		}},
		"no permission to look at a subscription": {fine: true, runs: true, set: func(_ *testing.T, srv *pubsubtest.Server) { srv.Deny("GetSubscription") }, configs: reads(source.Config{Ordering: options.PerKey}), want: []string{
			"subscription projects/p/subscriptions/input may not be looked up",
			"  pubsub.subscriptions.consume granted",
			"  pubsub.subscriptions.get missing",
			"    $ gcloud pubsub subscriptions add-iam-policy-binding input --project=p --member=user:jo@example.com --role=roles/pubsub.viewer",
			"  note: may not be looked up, so nothing of it was checked; a read assumes that it exists, is attached to a topic, delivers by pull and not exactly once, has message ordering",
		}},
		"no permission to look at a topic": {fine: true, runs: true, set: func(_ *testing.T, srv *pubsubtest.Server) { srv.Deny("GetTopic") }, configs: writes(sink.Config{}), want: []string{
			"topic projects/p/topics/output may not be looked up",
			"  pubsub.topics.publish granted",
		}},
		"credentials that are refused": {set: func(_ *testing.T, srv *pubsubtest.Server) {
			srv.Answer("GetTopic", status.Error(codes.Unauthenticated, "expired"))
		}, configs: writes(sink.Config{}), want: []string{
			"topic projects/p/topics/output is not known",
			"  fault: cannot be looked up: the credentials are not accepted: expired",
		}},
		"an answer that says nothing": {set: func(_ *testing.T, srv *pubsubtest.Server) {
			srv.Answer("GetTopic", status.Error(codes.FailedPrecondition, "no"))
		}, configs: writes(sink.Config{}), want: []string{
			"  fault: cannot be looked up: FailedPrecondition: no",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			if c.set != nil {
				c.set(t, srv)
			}
			// Queues of policies are on the same server.
			r := run(t, srv.Endpoint(), onServer(c.configs, srv.Endpoint()))
			got := lines(r)
			for _, w := range c.want {
				if !slices.Contains(strings.Split(got, "\n"), w) {
					t.Errorf("no line\n%s\nin:\n%s", w, got)
				}
			}
			if r.Clean() != c.fine || (r.Err() == nil) != c.runs {
				t.Errorf("clean %t, error %v:\n%s", r.Clean(), r.Err(), got)
			}
		})
	}
}

// onServer gives the queues of policies their connection.
func onServer(c check.Configs, endpoint string) check.Configs {
	c.Sources, c.Sinks = slices.Clone(c.Sources), slices.Clone(c.Sinks)
	for i := range c.Sources {
		if q, ok := c.Sources[i].OnDecodeFailure.Queue().(dlq.Config); ok {
			q.EmulatorEndpoint = endpoint
			c.Sources[i].OnDecodeFailure = source.SendTo(q)
		}
	}
	for i := range c.Sinks {
		if q, ok := c.Sinks[i].OnFailure.Queue().(dlq.Config); ok {
			q.EmulatorEndpoint = endpoint
			c.Sinks[i].OnFailure = sink.SendTo(q)
		}
	}
	return c
}

func init() { sink.RegisterResolver(chosen) }

func chosen(*message.Message, time.Time) (string, error) { return out, nil }

// Permissions on a project are Resource Manager's to tell.
func TestRun_PermissionsOnProjects(t *testing.T) {
	srv := newServer(t)
	configs := check.Configs{
		Sources: []source.Config{{Subscriptions: []source.Subscription{{Name: "projects/p/subscriptions/new", Create: &options.SubscriptionCreate{Topic: in}}}}},
		Sinks:   []sink.Config{{Topic: nowhere}, {Topic: "projects/q/topics/nowhere"}},
	}
	f := newFront(t, srv, map[string][]string{"projects/p": {"pubsub.topics.create"}, "projects/q": nil})
	r := run(t, f.endpoint, configs)
	type permission struct{ on, name, status, command string }
	var got []permission
	for _, res := range r.Resources {
		for _, p := range res.Permissions {
			if p.On != res.Name {
				got = append(got, permission{p.On, p.Name, string(p.Status), p.Command})
			}
		}
	}
	want := []permission{
		{"projects/p", "pubsub.subscriptions.create", "missing", "gcloud projects add-iam-policy-binding p --member=user:jo@example.com --role=roles/pubsub.editor --condition=None"},
		{"projects/p", "pubsub.topics.create", "granted", ""},
		{"projects/q", "pubsub.topics.create", "missing", "gcloud projects add-iam-policy-binding q --member=user:jo@example.com --role=roles/pubsub.editor --condition=None"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	wantErr := "source.Config.Subscriptions[0]: subscription projects/p/subscriptions/new may not be used: the account lacks pubsub.subscriptions.create on projects/p; grant roles/pubsub.editor\n" +
		"sink.Config[1].Topic: topic projects/q/topics/nowhere may not be used: the account lacks pubsub.topics.create on projects/q; grant roles/pubsub.editor"
	if err := r.Err(); err == nil || err.Error() != wantErr {
		t.Errorf("%v\nwant %s", err, wantErr)
	}
}

// A check that consumed a message, or created what it only meant to look at, would be
// worse than none.
func TestRun_ChangesNothing(t *testing.T) {
	srv := newServer(t)
	if _, err := srv.Publish(in, message.New([]byte("kept"))); err != nil {
		t.Fatal(err)
	}
	f := newFront(t, srv, map[string][]string{})
	type state struct {
		topics, subscriptions []string
		stats                 pubsubtest.Stats
		published             int64
		events                int
	}
	now := func() state {
		events := slices.DeleteFunc(srv.Events(), func(e pubsubtest.Event) bool { return e.Kind == pubsubtest.Refused })
		return state{srv.Topics(), srv.Subscriptions(), srv.Stats(sub), srv.Published(in), len(events)}
	}
	before := now()
	queue := dlq.Config{Topic: letters, EmulatorEndpoint: f.endpoint}
	run(t, f.endpoint, check.Configs{
		Sources: []source.Config{
			{Subscriptions: source.From(sub), StartPosition: options.Latest(), OnDecodeFailure: source.SendTo(queue)},
			{Subscriptions: source.FromTopic("p", in)},
		},
		Sinks: []sink.Config{{Topic: nowhere}, {Topic: out}},
	})
	if after := now(); !reflect.DeepEqual(before, after) {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
	want := []string{"GetSubscription", "GetTopic", "ListTopicSubscriptions", "TestIamPermissions"}
	if got := f.called(); !slices.Equal(got, want) {
		t.Errorf("called %q, want %q", got, want)
	}
}

func TestRun_AnAbsentServiceIsOneError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := listener.Addr().String()
	_ = listener.Close() // Nobody listens there now.
	_, err = check.Run(t.Context(), check.Configs{
		Sources: []source.Config{{Subscriptions: source.From(sub, outSub), EmulatorEndpoint: endpoint}},
		Sinks:   []sink.Config{{Topic: out, EmulatorEndpoint: endpoint}},
	}, check.Options{Patience: 300 * time.Millisecond})
	var absent *check.AbsentError
	if !errors.As(err, &absent) || absent.Endpoint != endpoint || status.Code(err) != codes.Unavailable ||
		strings.Count(err.Error(), "\n") > 0 || !strings.HasPrefix(err.Error(), "Pub/Sub at "+endpoint+" has not answered within 300ms: ") {
		t.Errorf("%v", err)
	}
}

// A service that is busy for a moment is not absent.
func TestRun_AsksAgain(t *testing.T) {
	srv := newServer(t)
	srv.Answer("GetTopic", status.Error(codes.ResourceExhausted, "quota"), pubsubtest.Times(2))
	if r := run(t, srv.Endpoint(), writes(sink.Config{})); !r.Clean() {
		t.Error(lines(r))
	}
}

func TestRun_TellsOfAKeyFileWithoutItsPath(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "key.json")
	if err := os.WriteFile(broken, []byte(`{"type":"service_account","private_key":"secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none.json"), broken} {
		_, err := check.Run(t.Context(), check.Configs{Sinks: []sink.Config{{Topic: out, ServiceAccountKeyFile: path}}}, check.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "ServiceAccountKeyFile: ") || strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}

// A connection that is at fault is not tried.
func TestRun_AConnectionAtFaultIsNotTried(t *testing.T) {
	r, err := check.Run(t.Context(), check.Configs{Sinks: []sink.Config{{Topic: out, EmulatorEndpoint: "here"}}}, check.Options{})
	if err != nil || r.Resources[0].State != check.Unknown || r.Err() == nil || !strings.Contains(r.Err().Error(), `sink.Config.EmulatorEndpoint: "here": must be host:port`) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Many are looked at in a moment, each once.
func TestRun_ManyResources(t *testing.T) {
	srv := newServer(t)
	var names []string
	for i := range 200 {
		name := fmt.Sprint("projects/p/subscriptions/many-", i)
		srv.MustCreateSubscription(name, in)
		names = append(names, name)
	}
	r := run(t, srv.Endpoint(), reads(source.Config{Subscriptions: source.From(names...)}))
	if len(r.Resources) != len(names)+1 || !r.Clean() || r.Resources[7].Name != names[7] {
		t.Errorf("%d resources, %v", len(r.Resources), r.Err())
	}
}

// What cannot be known of a permission is no fault: the emulator has none.
func TestRun_OnTheEmulator(t *testing.T) {
	endpoint := emulator.Start(t)
	client := emulator.Dial(t, endpoint)
	client.CreateTopic(in)
	client.CreateTopic(out)
	client.CreateSubscription(sub, in)
	r := run(t, endpoint, check.Configs{
		Sources: []source.Config{{Subscriptions: source.From(sub)}},
		Sinks:   []sink.Config{{Topic: out}, {Topic: nowhere}},
	})
	if !r.Clean() || r.Resources[0].Permissions[0].Status != check.NotKnown || r.Resources[2].State != check.WillBeCreated {
		t.Error(lines(r))
	}
}
