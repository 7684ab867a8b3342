package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"strings"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// A Phase is a part of a run with resources of its own, so that its counts are.
type Phase string

const (
	warmup   Phase = "warmup"
	measured Phase = "measured"
)

func (p Phase) inputTopic() string   { return "projects/bench/topics/input-" + string(p) }
func (p Phase) subscription() string { return "projects/bench/subscriptions/input-" + string(p) }

func (p Phase) outputTopic(i int) string {
	return fmt.Sprintf("projects/bench/topics/output-%s-%d", p, i)
}

func (p Phase) outputTopics(n int) []string {
	topics := make([]string, n)
	for i := range topics {
		topics[i] = p.outputTopic(i)
	}
	return topics
}

// progressTimeout is how long a goal may take: a contestant that never reaches
// it must not hold up the others for ever. A large backlog has slowestMessage more for
// each message.
const (
	progressTimeout = 5 * time.Minute
	slowestMessage  = 50 * time.Microsecond
)

// A serverSpec is what the coordinator wants of a server, on standard input.
type serverSpec struct {
	Load    load
	Backlog map[Phase]int // messages in the input subscription
	Live    *liveTask     `json:",omitempty"`
	Kept    int           // how many published messages of a topic are looked at in the end
}

// What is kept for the end: a few messages to look at, and where they have keys
// enough to see the order of a warm-up and of the last part of what is measured.
const (
	keptMessages = 16
	keptOrdered  = 20_000
)

// serverSpec is what t needs of a server.
func (t task) serverSpec() serverSpec {
	spec := serverSpec{Load: t.Load, Live: t.Live, Backlog: make(map[Phase]int), Kept: keptMessages}
	for p, n := range t.Messages {
		if t.Contestant.Work == toTopic {
			n = 0
		}
		spec.Backlog[p] = n
	}
	if t.Load.Keys > 0 {
		spec.Kept = max(keptMessages, keptOrdered/t.Load.Topics)
	}
	return spec
}

// An address says where a server listens, on standard output once it does.
type address struct {
	Endpoint string // Pub/Sub
	Control  string // net/rpc, for Control
}

// serve is the process of a server. It ends with its standard input.
func serve(stdin io.Reader, stdout io.Writer) error {
	in := json.NewDecoder(stdin)
	var spec serverSpec
	if err := in.Decode(&spec); err != nil {
		return fmt.Errorf("read what the server is to do: %w", err)
	}
	srv, err := pubsubtest.Start(spec.config())
	if err != nil {
		return err
	}
	defer srv.Close()
	if err := spec.prepare(srv); err != nil {
		return err
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = lis.Close() }()
	control := rpc.NewServer()
	if err := control.Register(&Control{srv, spec.Load}); err != nil {
		return err
	}
	go accept(control, lis) // ends with lis
	if err := json.NewEncoder(stdout).Encode(address{srv.Endpoint(), lis.Addr().String()}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, stdin)
	return err
}

func (spec serverSpec) config() pubsubtest.Config {
	// As the service does: what a key gets depends on how soon it is acknowledged.
	c := pubsubtest.Config{KeepPublished: spec.Kept, HoldKeys: spec.Load.Keys > 0}
	if spec.Live != nil {
		c.Events = pubsubtest.Unlimited // they have the times
	}
	return c
}

func accept(control *rpc.Server, lis net.Listener) {
	for {
		conn, err := lis.Accept()
		if err != nil {
			return
		}
		go control.ServeConn(conn) // ends with conn, or with the process
	}
}

func (spec serverSpec) prepare(srv *pubsubtest.Server) error {
	var opts []pubsubtest.SubscriptionOption
	if spec.Load.Keys > 0 {
		opts = append(opts, pubsubtest.Ordered())
	}
	if spec.Live != nil {
		return spec.Live.Situation.prepare(srv)
	}
	for p, n := range spec.Backlog {
		if err := srv.CreateTopic(p.inputTopic()); err != nil {
			return err
		}
		if err := srv.CreateSubscription(p.subscription(), p.inputTopic(), opts...); err != nil {
			return err
		}
		for _, topic := range p.outputTopics(spec.Load.Topics) {
			if err := srv.CreateTopic(topic); err != nil {
				return err
			}
		}
		if err := spec.fill(srv, p, n); err != nil {
			return err
		}
	}
	srv.Delay("Publish", spec.Load.Latency)
	return nil
}

// fill publishes a backlog. Messages without keys share their payload, so that ten
// million take about a gigabyte, whatever their size; those with keys are made one by
// one, of 251 payloads.
func (spec serverSpec) fill(srv *pubsubtest.Server, p Phase, n int) error {
	if spec.Load.Keys == 0 {
		return srv.Preload(p.inputTopic(), n, &message.Message{Data: []byte(strings.Repeat("x", spec.Load.Size))})
	}
	d := spec.Load.deck(p)
	batch := make([]*message.Message, 0, 1000)
	for i := range n {
		batch = append(batch, &message.Message{Data: d.data(i), OrderingKey: d.key(i)})
		if len(batch) < cap(batch) && i < n-1 {
			continue
		}
		if _, err := srv.Publish(p.inputTopic(), batch...); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return nil
}

// Control is what the other processes ask of a server, over net/rpc.
type Control struct {
	srv  *pubsubtest.Server
	load load
}

// A Goal is how far a phase is to be: so many messages of its input acknowledged,
// so many published to each of its outputs.
type Goal struct {
	Phase        Phase
	Acknowledged int64
	Published    []int64
}

// A State is what a phase has done and the server has used.
type State struct {
	Input     pubsubtest.Stats
	Published []int64
	// Requests is how many publish requests the server got, of all phases.
	Requests int64
	// CPU is what the server's process has used.
	CPU time.Duration
}

// Await returns once the goal is reached.
func (c *Control) Await(goal Goal, state *State) error {
	ctx, cancel := context.WithTimeout(context.Background(), progressTimeout+time.Duration(goal.Acknowledged)*slowestMessage)
	defer cancel()
	err := c.srv.Await(ctx, goal.Phase.subscription(), func(s pubsubtest.Stats) bool { return s.Acknowledged >= goal.Acknowledged })
	for i, n := range goal.Published {
		if err == nil {
			err = c.srv.AwaitPublished(ctx, goal.Phase.outputTopic(i), n)
		}
	}
	if err != nil {
		return err
	}
	return c.State(goal.Phase, state)
}

// State returns at once.
func (c *Control) State(p Phase, state *State) (err error) {
	state.Input = c.srv.Stats(p.subscription())
	for _, topic := range p.outputTopics(c.load.Topics) {
		state.Published = append(state.Published, c.srv.Published(topic))
	}
	state.Requests = c.srv.Calls("Publish")
	state.CPU, err = cpuTime()
	return err
}

// Kept is what the published messages that were kept tell.
type Kept struct {
	Seen       int
	WrongSize  int
	OutOfOrder int
}

// Look looks at what was kept of a phase.
func (c *Control) Look(p Phase, kept *Kept) error { //nolint:unparam // the form that net/rpc asks for
	for _, topic := range p.outputTopics(c.load.Topics) {
		var order order
		for _, m := range c.srv.Messages(topic) {
			kept.Seen++
			switch {
			case len(m.Data) != c.load.Size:
				kept.WrongSize++
			case c.load.Keys > 0 && !order.follows(m.OrderingKey, m.Data):
				kept.OutOfOrder++
			}
		}
	}
	return nil
}
