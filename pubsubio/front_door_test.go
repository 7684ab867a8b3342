package pubsubio_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/passert"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
	"github.com/google/go-cmp/cmp"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// What Read gives and Write takes is the type of Google's package that this module is built
// with. The other two have aliases of it and cannot be built here, one because this module
// does without version 1, one because genproto has lost it: decision 0024.
var _ *pubsubio.PubsubMessage = (*pubsubpb.PubsubMessage)(nil)

func init() {
	register.Function1x2(breakAtX)
	register.Function1x1(ours)
}

// breakAtX fails the bundle of a message "x".
func breakAtX(data []byte) ([]byte, error) {
	if string(data) == "x" {
		return nil, errors.New("x is broken")
	}
	return data, nil
}

// ours makes a message of this project of one of Google's.
func ours(p *pubsubpb.PubsubMessage) *message.Message { return message.FromProto(p, 0) }

// The topics and the subscription of these tests.
const (
	ordersTopic = "projects/shop/topics/orders"
	paidTopic   = "projects/shop/topics/paid"
	orders      = "projects/shop/subscriptions/orders"
)

// shop starts a server with those, and returns it with the service that it is.
func shop(t *testing.T) (*pubsubtest.Server, pubsubio.Service) {
	t.Helper()
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(ordersTopic)
	srv.MustCreateTopic(paidTopic)
	srv.MustCreateSubscription(orders, ordersTopic)
	return srv, pubsubio.Service{EmulatorEndpoint: srv.Endpoint()}
}

// A job is a pipeline that runs beside the test.
type job struct {
	ctx    context.Context // of the pipeline, and of who waits for what it does
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once ended is closed
}

// start runs a pipeline, until the end of the test at the latest.
func start(t *testing.T, build func(s beam.Scope)) *job {
	t.Helper()
	p, s := beam.NewPipelineWithRoot()
	build(s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	j := &job{ctx: ctx, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(j.ended)
		j.err = pubsubio.Run(ctx, p)
	}()
	t.Cleanup(func() { cancel(); <-j.ended })
	return j
}

// stop ends a pipeline that has nothing left to do.
func (j *job) stop(t *testing.T) {
	t.Helper()
	j.cancel()
	<-j.ended
	if !errors.Is(j.err, pubsubio.ErrStopped) {
		t.Errorf("the pipeline ended with %v", j.err)
	}
}

func publish(t *testing.T, srv *pubsubtest.Server, topic string, messages ...*message.Message) {
	t.Helper()
	if _, err := srv.Publish(topic, messages...); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What is read is published again as it was, in either type, without what the service
// refuses, and with the key.
func TestFrontDoor_WholeMessagesPassThrough(t *testing.T) {
	for name, pass := range map[string]func(beam.Scope, beam.PCollection) beam.PCollection{
		"Google's type": func(_ beam.Scope, col beam.PCollection) beam.PCollection { return col },
		"our type":      func(s beam.Scope, col beam.PCollection) beam.PCollection { return beam.ParDo(s, ours, col) },
	} {
		t.Run(name, func(t *testing.T) {
			srv, service := shop(t)
			want := &message.Message{Data: []byte("1"), Attributes: map[string]string{"a": "b"}, OrderingKey: "k"}
			publish(t, srv, ordersTopic, want)
			j := start(t, func(s beam.Scope) {
				col := service.Read(s, "shop", pubsubio.ReadOptions{Subscription: "orders", WithAttributes: true})
				service.Write(s, "shop", "paid", pass(s, col))
			})
			await(t, srv.Await(j.ctx, orders, func(s pubsubtest.Stats) bool { return s.Acknowledged == 1 }))
			j.stop(t)
			got := srv.Messages(paidTopic)[0]
			if diff := cmp.Diff(want, got.Republishable()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFrontDoor_ReadsData(t *testing.T) {
	srv, service := shop(t)
	for _, data := range []string{"1", "2", "3"} {
		publish(t, srv, ordersTopic, message.New([]byte(data)).WithAttribute("id", data+data))
	}
	j := start(t, func(s beam.Scope) {
		// Full names, as those of an environment's configuration.
		col := service.Read(s, "", pubsubio.ReadOptions{Subscription: orders, IDAttribute: "id"})
		service.Write(s, "elsewhere", paidTopic, beam.ParDo(s, breakAtX, col))
	})
	await(t, srv.Await(j.ctx, orders, func(s pubsubtest.Stats) bool { return s.Acknowledged == 3 }))
	j.stop(t)
	if n := srv.Published(paidTopic); n != 3 {
		t.Errorf("%d messages arrived", n)
	}
}

// C23: subscriptions that were made for a topic stayed for ever. However a run ends, it
// leaves none.
func TestFrontDoor_C23_ATopicsSubscriptionEndsWithTheRun(t *testing.T) {
	srv, service := shop(t)
	seen := make(map[string]bool)
	for run, data := range []string{"stopped", "x", "stopped again"} {
		j := start(t, func(s beam.Scope) {
			col := service.Read(s, "shop", pubsubio.ReadOptions{Topic: "orders"})
			service.Write(s, "shop", "paid", beam.ParDo(s, breakAtX, col))
		})
		name := awaitOwn(j.ctx, t, srv, seen)
		if !strings.HasPrefix(name, "projects/shop/subscriptions/beam-orders-") {
			t.Errorf("the run reads %s", name)
		}
		publish(t, srv, ordersTopic, message.New([]byte(data)))
		if data == "x" {
			<-j.ended
			if j.err == nil || !strings.Contains(j.err.Error(), "x is broken") {
				t.Errorf("the pipeline ended with %v", j.err)
			}
		} else {
			await(t, srv.Await(j.ctx, name, func(s pubsubtest.Stats) bool { return s.Acknowledged == 1 }))
			j.stop(t)
		}
		if got := srv.Subscriptions(); len(got) != 1 {
			t.Errorf("run %d left %v", run, got)
		}
	}
	if n := srv.Published(paidTopic); n != 2 {
		t.Errorf("%d messages arrived", n)
	}
}

// A test binary that has run ptest before has an address in Beam's flag --endpoint that
// nobody gave: cancelling such a run only ended the wait, and its subscription stayed.
func TestFrontDoor_ARunAfterPtestStopsAndLeavesNothing(t *testing.T) {
	before := *jobopts.Endpoint
	t.Cleanup(func() { *jobopts.Endpoint = before })
	*jobopts.Endpoint = ""
	p, s, in := ptest.CreateList([]int{1, 2})
	passert.Count(s, in, "in", 2)
	ptest.RunAndValidate(t, p)

	srv, service := shop(t)
	j := start(t, func(s beam.Scope) {
		service.Write(s, "shop", "paid", service.Read(s, "shop", pubsubio.ReadOptions{Topic: "orders"}))
	})
	name := awaitOwn(j.ctx, t, srv, map[string]bool{})
	publish(t, srv, ordersTopic, message.New([]byte("1")))
	await(t, srv.Await(j.ctx, name, func(s pubsubtest.Stats) bool { return s.Acknowledged == 1 }))
	j.stop(t)
	if got := srv.Subscriptions(); len(got) != 1 {
		t.Errorf("the run left %v", got)
	}
}

// awaitOwn waits until a subscription is read that is not among those seen.
func awaitOwn(ctx context.Context, t *testing.T, srv *pubsubtest.Server, seen map[string]bool) (name string) {
	t.Helper()
	await(t, srv.AwaitEvent(ctx, func(e pubsubtest.Event) bool {
		name = e.Subscription
		return e.Kind == pubsubtest.StreamOpen && !seen[name]
	}))
	seen[name] = true
	return name
}

// C24: the subscription was made in the project of its topic.
func TestFrontDoor_C24_ATopicOfAnotherProject(t *testing.T) {
	srv, service := shop(t)
	const topic = "projects/ex.com:p/topics/a.b~c%2B+d-e"
	srv.MustCreateTopic(topic)
	j := start(t, func(s beam.Scope) {
		service.Write(s, "shop", "paid", service.Read(s, "shop", pubsubio.ReadOptions{Topic: topic}))
	})
	name := awaitOwn(j.ctx, t, srv, map[string]bool{})
	if !strings.HasPrefix(name, "projects/shop/subscriptions/beam-a.b~c%2B+d-e-") {
		t.Errorf("the run reads %s", name)
	}
	publish(t, srv, topic, message.New([]byte("1")))
	await(t, srv.Await(j.ctx, name, func(s pubsubtest.Stats) bool { return s.Acknowledged == 1 }))
	j.stop(t)
}

// A misspelt topic would be created, and what is published to it lost to everybody.
func TestFrontDoor_WritesToATopicThatExists(t *testing.T) {
	srv, service := shop(t)
	p, s := beam.NewPipelineWithRoot()
	service.Write(s, "shop", "pade", beam.Create(s, []byte("1")))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := pubsubio.Run(ctx, p); err == nil || !strings.Contains(err.Error(), "projects/shop/topics/pade") {
		t.Errorf("the pipeline ended with %v", err)
	}
	if n := srv.Calls("CreateTopic"); n != 0 || len(srv.Topics()) != 2 {
		t.Errorf("%d topics were created: %v", n, srv.Topics())
	}
}

func TestTryRead_ReportsEveryFault(t *testing.T) {
	long := "a" + strings.Repeat("b", 255)
	const either = "exactly one of the two must be set"
	for _, c := range []struct {
		project string
		opts    pubsubio.ReadOptions
		want    []string
	}{
		{"p", pubsubio.ReadOptions{}, []string{either}},
		{"p", pubsubio.ReadOptions{Topic: "orders", Subscription: "orders", IDAttribute: "a\xc5"}, []string{either, "source.Config.IDAttribute"}},
		{"p", pubsubio.ReadOptions{Topic: "ab", TimestampAttribute: "a\xc5"}, []string{`pubsubio.ReadOptions.Topic: topic "projects/p/topics/ab": the id must have 3 to 255 characters`, "source.Config.TimestampAttribute"}},
		{"p", pubsubio.ReadOptions{Subscription: "goog1"}, []string{"pubsubio.ReadOptions.Subscription: ", "must not start with goog"}},
		{"p", pubsubio.ReadOptions{Subscription: "1ab"}, []string{"must start with a letter"}},
		{"p", pubsubio.ReadOptions{Topic: long}, []string{"it has 256"}},
		{"", pubsubio.ReadOptions{Topic: "projects/p/topics/orders"}, []string{`project "", in which the subscription of Topic is created`, "the project must be one or more of"}},
		{"p", pubsubio.ReadOptions{Subscription: "orders", TimestampAttribute: "a\xc5"}, []string{"source.Config.TimestampAttribute"}},
	} {
		_, s := beam.NewPipelineWithRoot()
		_, err := pubsubio.Service{EmulatorEndpoint: "nowhere"}.TryRead(s, c.project, c.opts)
		for _, want := range append(c.want, "pubsubio.Read: ", "EmulatorEndpoint") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v in %q: %v, want %q in it", c.opts, c.project, err, want)
			}
		}
	}
}

func TestTryWrite_ReportsEveryFault(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	err := pubsubio.Service{EmulatorEndpoint: "nowhere"}.TryWrite(s, "p", "1ab", beam.Create(s, "text"))
	for _, want := range []string{
		`pubsubio.Write: topic: topic "projects/p/topics/1ab": the id must start with a letter`,
		"the collection holds string: it must hold []byte, *pubsubpb.PubsubMessage or *message.Message",
		"EmulatorEndpoint",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if err := (pubsubio.Service{}).TryWrite(s, "p", "orders", beam.PCollection{}); err == nil || !strings.Contains(err.Error(), "the collection is not valid") {
		t.Errorf("error %v", err)
	}
	if err := (pubsubio.Service{}).TryWrite(s, "p", "orders", beam.AddFixedKey(s, beam.Create(s, []byte("a")))); err == nil || !strings.Contains(err.Error(), "the collection holds KV<") {
		t.Errorf("error %v", err)
	}
}

// Beam's own panic where these do.
func TestReadAndWrite_PanicAtConstruction(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	for name, build := range map[string]func(){
		"pubsubio.Read":  func() { pubsubio.Read(s, "p", pubsubio.ReadOptions{}) },
		"pubsubio.Write": func() { pubsubio.Write(s, "p", "orders", beam.Create(s, 1)) },
	} {
		func() {
			defer func() {
				if r := fmt.Sprint(recover()); !strings.HasPrefix(r, name+": ") {
					t.Errorf("%s: panic %v", name, r)
				}
			}()
			build()
		}()
	}
	pubsubio.Write(s, "p", "orders", pubsubio.Read(s, "p", pubsubio.ReadOptions{Topic: "orders"}))
}

func TestRunAndReport_TellsWhatWasDone(t *testing.T) {
	_, service := shop(t)
	p, s := beam.NewPipelineWithRoot()
	service.Write(s, "shop", "paid", beam.Create(s, []byte("1"), []byte("2")))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if counts, err := pubsubio.RunAndReport(ctx, p); err != nil || counts.Published != 2 {
		t.Errorf("%+v, error %v", counts, err)
	}
}
