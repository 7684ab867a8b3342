package source

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// adminServer is a server with the topics of a startup's tests, and a client.
func adminServer(t *testing.T) (*pubsubtest.Server, *emulator.Client) {
	t.Helper()
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(aTopic)
	srv.MustCreateTopic(deadTopic)
	return srv, emulator.Dial(t, srv.Endpoint())
}

// startOn runs the startup of a read on a server, as a DoFn does.
func startOn(t *testing.T, srv *pubsubtest.Server, cfg Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg.EmulatorEndpoint = srv.Endpoint()
	_, err := (&settings{Config: cfg}).startUp(ctx)
	return err
}

// described returns a subscription as the service describes it.
func described(t *testing.T, client *emulator.Client, name string) *pubsubpb.Subscription {
	t.Helper()
	s, err := client.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: name})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStartup_CreatesWithEverySetting(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		create options.SubscriptionCreate
		want   *pubsubpb.Subscription
	}{
		"defaults are the service's": {
			options.SubscriptionCreate{Topic: aTopic},
			&pubsubpb.Subscription{
				AckDeadlineSeconds: 10, MessageRetentionDuration: durationpb.New(7 * day),
				ExpirationPolicy: &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(31 * day)},
			},
		},
		"everything": {
			options.SubscriptionCreate{
				Topic: aTopic, AckDeadline: 77 * time.Second, EnableMessageOrdering: true, MessageRetention: time.Hour,
				RetainAckedMessages: true, ExpirationTTL: 2 * day, Filter: `attributes.region = "eu"`,
				DeadLetterPolicy: &options.DeadLetterPolicy{Topic: deadTopic, MaxDeliveryAttempts: 7},
			},
			&pubsubpb.Subscription{
				AckDeadlineSeconds: 77, EnableMessageOrdering: true, MessageRetentionDuration: durationpb.New(time.Hour),
				RetainAckedMessages: true, ExpirationPolicy: &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(2 * day)}, Filter: `attributes.region = "eu"`,
				DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: deadTopic, MaxDeliveryAttempts: 7},
			},
		},
		"it never expires, and five deliveries are the default": {
			options.SubscriptionCreate{Topic: aTopic, NeverExpire: true, DeadLetterPolicy: &options.DeadLetterPolicy{Topic: deadTopic}},
			&pubsubpb.Subscription{
				AckDeadlineSeconds: 10, MessageRetentionDuration: durationpb.New(7 * day), ExpirationPolicy: &pubsubpb.ExpirationPolicy{},
				DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: deadTopic, MaxDeliveryAttempts: 5},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, client := adminServer(t)
			wantError(t, startOn(t, srv, Config{Subscriptions: []Subscription{{Name: subA, Create: &c.create}}}), "")
			c.want.Name, c.want.Topic, c.want.State = subA, aTopic, pubsubpb.Subscription_ACTIVE
			if got := described(t, client, subA); !proto.Equal(got, c.want) {
				t.Errorf("created\n%v\nwant\n%v", got, c.want)
			}
		})
	}
}

// What exists is neither changed nor compared.
func TestStartup_LeavesAnExistingSubscriptionAsItIs(t *testing.T) {
	srv, client := adminServer(t)
	srv.MustCreateSubscription(subA, deadTopic, pubsubtest.AckDeadline(60))
	before := described(t, client, subA)
	wantError(t, startOn(t, srv, Config{Subscriptions: []Subscription{{Name: subA, Create: &options.SubscriptionCreate{Topic: aTopic, AckDeadline: time.Minute * 5}}}}), "")
	if got := described(t, client, subA); !proto.Equal(got, before) {
		t.Errorf("it was %v, and is %v", before, got)
	}
	if n := srv.Calls("CreateSubscription") + srv.Calls("UpdateSubscription"); n != 0 {
		t.Errorf("%d calls to create or update", n)
	}
}

// A subscription was made in the project of its topic; names with a colon were
// refused.
func TestStartup_C24_CreatesInTheProjectOfItsName(t *testing.T) {
	srv, client := adminServer(t)
	const topic, name = "projects/ex.com:p/topics/a.b~c%2B+d-e", "projects/other.org:q/subscriptions/a.b~c%2B+d-e"
	srv.MustCreateTopic(topic)
	cfg := Config{Subscriptions: []Subscription{{Name: name, Create: &options.SubscriptionCreate{Topic: topic}}}}
	wantError(t, cfg.Validate(), "")
	wantError(t, startOn(t, srv, cfg), "")
	if got := described(t, client, name); got.GetTopic() != topic || len(srv.Subscriptions()) != 1 {
		t.Errorf("created %v of %v", srv.Subscriptions(), got)
	}
}

// What the server knows and the program cannot is refused by the server's own words.
func TestStartup_CreationThatTheServiceRefuses(t *testing.T) {
	srv, _ := adminServer(t)
	err := startOn(t, srv, Config{Subscriptions: []Subscription{{Name: subA, Create: &options.SubscriptionCreate{Topic: aTopic, Filter: "attributes."}}}})
	if err == nil || !strings.Contains(err.Error(), subA+": cannot be created: InvalidArgument") || !strings.Contains(err.Error(), "options.SubscriptionCreate") {
		t.Errorf("error %v", err)
	}
	if n := srv.Calls("CreateSubscription"); n != 1 {
		t.Errorf("%d tries", n)
	}
}

// A topic that is deleted before the start, a detached subscription, push and export.
func TestStartup_C21_RefusesWhatDeliversNothing(t *testing.T) {
	srv, client := adminServer(t)
	const gone, bigQuery = "projects/q/topics/gone", "projects/p/subscriptions/bigquery"
	srv.MustCreateTopic(gone)
	srv.MustCreateSubscription(subA, gone)
	client.CreateSubscription(subB, aTopic)
	client.CreateSubscription(subC, aTopic, pushed)
	client.CreateSubscription(bigQuery, aTopic, func(s *pubsubpb.Subscription) { s.BigqueryConfig = &pubsubpb.BigQueryConfig{Table: "p.d.t"} })
	if err := srv.DeleteTopic(gone); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Publisher.DetachSubscription(t.Context(), &pubsubpb.DetachSubscriptionRequest{Subscription: subB}); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Subscriptions: From(subA, subB, subC, bigQuery), StartPosition: options.EarliestRetained()}
	wantError(t, startOn(t, srv, cfg), "source: 4 of 4 subscriptions cannot be read as configured:\n"+
		"source: "+subA+": its topic is deleted: it gets no messages any more, also if a topic of that name is created; create another subscription and read that\n"+
		"source: "+subB+": is detached from its topic: it holds no messages and gets none; create another subscription and read that\n"+
		"source: "+subC+": delivers by push, so that nothing can be pulled from it; read a subscription that delivers by pull\n"+
		"source: "+bigQuery+": delivers by export to BigQuery, so that nothing can be pulled from it; read a subscription that delivers by pull")
	if n := srv.Calls("Seek"); n != 0 {
		t.Errorf("%d seeks although something was refused", n)
	}
}

// Each permission that is missing is named; the one to look is done without.
func TestStartup_NamesThePermissionThatIsMissing(t *testing.T) {
	srv, _ := adminServer(t)
	srv.MustCreateSubscription(subA, aTopic)
	cfg := Config{Subscriptions: []Subscription{{Name: subA}, {Name: subB, Create: creatable}}, StartPosition: options.EarliestRetained()}

	create := srv.Deny("CreateSubscription")
	for _, want := range []string{subB, "PermissionDenied", "pubsub.subscriptions.create", "pubsub.topics.attachSubscription on " + aTopic} {
		if err := startOn(t, srv, cfg); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), subA+":") {
			t.Errorf("want %s in the error %v", want, err)
		}
	}
	create.Remove()

	seek := srv.Deny("Seek", subA)
	for _, want := range []string{subA, "PermissionDenied", "pubsub.subscriptions.consume", "source.Config.StartPosition"} {
		if err := startOn(t, srv, cfg); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), subB+":") {
			t.Errorf("want %s in the error %v", want, err)
		}
	}
	seek.Remove()

	srv.Deny("GetSubscription")
	text := logged(t, func() { wantError(t, startOn(t, srv, cfg), "") })
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, "pubsub.subscriptions.get") || !strings.Contains(text, subA) {
		t.Errorf("warnings:\n%s", text)
	}
}

// A seek right after the creation, which not all of the service knows of yet.
func TestStartup_SeeksANewSubscriptionThatIsNotKnownEverywhere(t *testing.T) {
	srv, _ := adminServer(t)
	srv.HideNewSubscriptions(0, 1)
	wantError(t, startOn(t, srv, Config{Subscriptions: []Subscription{{Name: subA, Create: creatable}}, StartPosition: options.EarliestRetained()}), "")
	if n := srv.Calls("Seek"); n != 2 {
		t.Errorf("%d seeks", n)
	}
}

func TestStartup_Positions(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		position options.StartPosition
		backlog  int64 // of acknowledged messages from -3 h and -1 h, and a waiting one from -2 h
	}{
		"ContinueFromSubscription": {options.ContinueFromSubscription(), 1},
		"EarliestRetained":         {options.EarliestRetained(), 3},
		"Latest":                   {options.Latest().At(now), 0},
		"FromTimestamp":            {options.FromTimestamp(now.Add(-90 * time.Minute)), 1},
		"FromTimestamp, all":       {options.FromTimestamp(now.Add(-4 * time.Hour)), 3},
	} {
		t.Run(name, func(t *testing.T) {
			srv, client := adminServer(t)
			srv.MustCreateSubscription(subA, aTopic, pubsubtest.RetainAcked())
			publishAged(t, srv, now, -3*time.Hour, -time.Hour)
			client.Drain(subA)
			publishAged(t, srv, now, -2*time.Hour)
			for range 2 { // Running again changes nothing.
				wantError(t, startOn(t, srv, Config{Subscriptions: From(subA), StartPosition: c.position}), "")
				if s := srv.Stats(subA); s.Backlog != c.backlog {
					t.Errorf("%d messages wait, want %d", s.Backlog, c.backlog)
				}
			}
		})
	}
}

// The startup ran again after messages had come since: nothing of those is skipped.
func TestStartup_LatestSkipsNothingWhenItRunsAgain(t *testing.T) {
	srv, _ := adminServer(t)
	srv.MustCreateSubscription(subA, aTopic)
	now := time.Now()
	cfg := Config{Subscriptions: From(subA), StartPosition: options.Latest().At(now)}
	publishAged(t, srv, now, -time.Hour)
	wantError(t, startOn(t, srv, cfg), "")
	publishAged(t, srv, now, time.Second, 2*time.Second)
	wantError(t, startOn(t, srv, cfg), "")
	if s := srv.Stats(subA); s.Backlog != 2 {
		t.Errorf("%d messages wait, want those that came since the construction", s.Backlog)
	}
}

// publishAged publishes messages of those ages.
func publishAged(t *testing.T, srv *pubsubtest.Server, now time.Time, ages ...time.Duration) {
	t.Helper()
	for _, age := range ages {
		if _, err := srv.Publish(aTopic, &message.Message{Data: []byte(age.String()), PublishTime: now.Add(age)}); err != nil {
			t.Fatal(err)
		}
	}
}

// One call about each subscription and step, over one connection.
func TestStartup_AThousandSubscriptionsOnAServer(t *testing.T) {
	const n = 1000
	srv, _ := adminServer(t)
	var all []Subscription
	for i := range n {
		s := Subscription{Name: fmt.Sprintf("%s-%d", subA, i), Create: creatable}
		if i%2 == 0 {
			srv.MustCreateSubscription(s.Name, aTopic)
		}
		all = append(all, s)
	}
	began := time.Now()
	wantError(t, startOn(t, srv, Config{Subscriptions: all, StartPosition: options.EarliestRetained()}), "")
	took := time.Since(began)
	t.Logf("%d subscriptions in %v", n, took)
	if took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if gets, creates, seeks := srv.Calls("GetSubscription"), srv.Calls("CreateSubscription"), srv.Calls("Seek"); gets != n || creates != n/2 || seeks != n {
		t.Errorf("%d look-ups, %d creations, %d seeks", gets, creates, seeks)
	}
	if _, most := srv.Connections(); most != 1 {
		t.Errorf("%d connections", most)
	}
}

func TestStartupFn_EmitsEachSplitOnceAllIsInOrder(t *testing.T) {
	srv, _ := adminServer(t)
	srv.MustCreateSubscription(subA, aTopic)
	fn := &startupFn{settings{Config: Config{Subscriptions: From(subA, subB), Splits: 3, EmulatorEndpoint: srv.Endpoint()}}}
	fn.Config.Subscriptions[1].Create = creatable
	var got []string
	nonces := make(map[string]bool)
	if err := fn.ProcessElement(t.Context(), nil, func(a assignment) {
		got = append(got, fmt.Sprintf("%s %d", a.Subscription, a.Split))
		nonces[a.ReaderNonce] = true
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{subA + " 0", subA + " 1", subA + " 2", subB + " 0", subB + " 1", subB + " 2"}
	if !slices.Equal(got, want) || len(nonces) != len(want) {
		t.Errorf("emitted %v with %d nonces", got, len(nonces))
	}
}

func TestStartupFn_EmitsNothingWhereSomethingIsRefused(t *testing.T) {
	srv, _ := adminServer(t)
	srv.MustCreateSubscription(subA, aTopic)
	srv.MustCreateSubscription(subB, aTopic, pubsubtest.ExactlyOnce())
	fn := &startupFn{settings{Config: Config{Subscriptions: From(subA, subB), EmulatorEndpoint: srv.Endpoint()}}}
	err := fn.ProcessElement(t.Context(), nil, func(a assignment) { t.Errorf("emitted %+v", a) })
	if err == nil || !strings.Contains(err.Error(), "exactly-once") {
		t.Errorf("error %v", err)
	}
}

func TestStartupFn_EmitsNothingForAStoppingRun(t *testing.T) {
	srv, _ := adminServer(t)
	srv.MustCreateSubscription(subA, aTopic)
	r := run.Start(run.Finalized, true)
	fn := &startupFn{settings{Config: Config{Subscriptions: From(subA), EmulatorEndpoint: srv.Endpoint()}, Binding: r.Binding}}
	r.Stop()
	nothing := func(a assignment) { t.Errorf("emitted %+v", a) }
	wantError(t, fn.ProcessElement(t.Context(), nil, nothing), "")
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantError(t, fn.ProcessElement(t.Context(), nil, nothing), errRunEnded.Error())
}

// An error of the credentials names the fault, not the file.
func TestStartupFn_CredentialsThatCannotBeRead(t *testing.T) {
	fn := &startupFn{settings{Config: Config{Subscriptions: From(subA), ServiceAccountKeyFile: "/no/such/secret.json"}}}
	err := fn.ProcessElement(t.Context(), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "key file") || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}
