package pubsubtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// An Order is a rule and what is done with the calls that it applies to.
type Order struct {
	server *Server
	rule   Rule
	script script
	seed   maphash.Seed // of requests, for FirstAttempt

	mu     sync.Mutex      // guards all below
	seen   int             // calls that the rule's other fields left
	made   map[uint64]bool // requests, for FirstAttempt
	fired  int64
	random *rand.Rand
}

// Order makes the server treat the calls that a rule applies to as the actions
// say, from now on until Remove. It panics if the rule cannot apply to any call
// or there is no action.
//
// Of several orders that apply to a call, the waits of all are added up, and the
// first that was given decides how the call ends. Later ones that would end it
// are passed over: for them, the call did not happen.
//
// Orders are for calls over gRPC. The server's own methods, such as
// [Server.Publish], do not know of them.
func (s *Server) Order(r Rule, actions ...Action) *Order {
	r.validate(s)
	if len(actions) == 0 {
		panicMisuse("an order without an action")
	}
	o := &Order{server: s, rule: r, seed: maphash.MakeSeed(), random: rand.New(rand.NewPCG(r.Seed, 0))}
	for _, act := range actions {
		act(&o.script)
	}
	s.orders.change(s.methods, func(all []*Order) []*Order { return append(all, o) })
	return o
}

// Fired returns how many calls the order applied to so far. A call counts when
// it arrives, before any wait.
func (o *Order) Fired() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fired
}

// AwaitFired returns nil as soon as the order has applied to n calls. When ctx
// ends first, the error wraps its cause and tells the count.
func (o *Order) AwaitFired(ctx context.Context, n int64) error {
	err := o.server.changes.await(ctx, func() bool { return o.Fired() >= n })
	if err != nil {
		return fmt.Errorf("pubsubtest: await an order's call %d: %w; it has %d", n, err, o.Fired())
	}
	return nil
}

// Remove ends the order for calls to come. Those that it holds back stay held.
// Removing it again does nothing.
func (o *Order) Remove() {
	o.server.orders.change(o.server.methods, func(all []*Order) []*Order {
		return slices.DeleteFunc(all, func(other *Order) bool { return other == o })
	})
}

// fire counts a call and reports whether the order applies to it.
func (o *Order) fire(in *incoming) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &o.rule
	if r.Times > 0 && o.fired >= int64(r.Times) {
		return false
	}
	if r.FirstAttempt && !o.isFirstLocked(in.publish) {
		return false
	}
	o.seen++
	n := o.seen - r.Skip
	if n <= 0 || r.Every > 1 && n%r.Every != 0 || r.Probability > 0 && o.random.Float64() >= r.Probability {
		return false
	}
	o.fired++
	return true
}

// isFirstLocked reports whether a request has other messages than all before.
func (o *Order) isFirstLocked(req *publishRequest) bool {
	sum := hashOf(o.seed, req)
	if o.made[sum] {
		return false
	}
	if o.made == nil {
		o.made = make(map[uint64]bool)
	}
	o.made[sum] = true
	return true
}

// hashOf is the same for requests with the same messages, also if a client has
// encoded the attributes in another order.
func hashOf(seed maphash.Seed, req *publishRequest) uint64 {
	all := []byte(req.topic)
	for i := range req.messages {
		sum := uint64(0)
		_ = eachField(req.messages[i].wire, func(num protowire.Number, v []byte) error { // it was read before
			sum += maphash.Bytes(seed, v) * uint64(num)
			return nil
		})
		all = binary.LittleEndian.AppendUint64(all, sum)
	}
	return maphash.Bytes(seed, all)
}

// drawn returns pauses of fixed length in place of ps.
func (o *Order) drawn(ps []pause) []pause {
	if len(ps) == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]pause, len(ps))
	for i, p := range ps {
		out[i] = pause{least: p.length(o.random), until: p.until}
	}
	return out
}

// orders are the orders of a server, in the order in which they were given.
type orders struct {
	mu  sync.Mutex // guards all, and the writing of every method's orders
	all []*Order
}

// change replaces the orders, and those of each method that they apply to.
func (os *orders) change(methods map[string]*method, f func([]*Order) []*Order) {
	os.mu.Lock()
	defer os.mu.Unlock()
	os.all = f(slices.Clone(os.all))
	for _, m := range methods {
		var of []*Order
		for _, o := range os.all {
			if o.rule.Method == m.name || o.rule.Method == "" && (m.name == "Publish" || !o.rule.ofMessages()) {
				of = append(of, o)
			}
		}
		m.orders.Store(&of)
	}
}

// A plan is what the orders make of one call.
type plan struct {
	in            *incoming
	before, after []pause
	carry         bool
	ending        *ending
	fired         bool
}

// plan asks the method's orders about a call.
func (m *method) plan(in *incoming) plan {
	p := plan{in: in}
	for _, o := range *m.orders.Load() {
		ends := o.script.ending != nil
		if ends && p.ending != nil || !o.rule.matches(in) || !o.fire(in) {
			continue
		}
		p.fired = true
		p.before = append(p.before, o.drawn(o.script.before)...)
		p.after = append(p.after, o.drawn(o.script.after)...)
		if ends {
			p.ending, p.carry = o.script.ending, o.script.carry
		}
	}
	return p
}

// run carries a call out as planned.
func (p *plan) run(ctx context.Context, do func() (any, error)) (resp any, err error) {
	if err := waitAll(ctx, p.before); err != nil {
		return nil, err
	}
	if p.ending == nil || p.carry {
		if resp, err = do(); err != nil {
			return nil, err
		}
		if err := waitAll(ctx, p.after); err != nil {
			return nil, err
		}
	}
	if p.ending != nil {
		return nil, p.ending.finish(ctx, p.in)
	}
	return resp, nil
}

func waitAll(ctx context.Context, ps []pause) error {
	for _, p := range ps {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
