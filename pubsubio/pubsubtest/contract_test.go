package pubsubtest_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// The contract: what code may rely on, as far as Google's emulator or pstest, the
// fake in its Go client, does it too. It is run against all three. Where one of
// them does something else, differences says what, and the case is run all the
// same: one that holds after all is a line to be taken out.

// A target is a server that the contract is run against.
type target int

const (
	thisServer target = iota
	theEmulator
	pstestServer
)

func TestContract_ThisServer(t *testing.T) {
	testContract(t, thisServer, pubsubtest.New(t).Endpoint())
}

func TestContract_Emulator(t *testing.T) {
	testContract(t, theEmulator, emulator.Start(t))
}

func TestContract_Pstest(t *testing.T) {
	srv := pstest.NewServer()
	t.Cleanup(func() { _ = srv.Close() })
	testContract(t, pstestServer, srv.Addr)
}

// crashes begins what a server does that cannot go on after it: the case is not
// run against it.
const crashes = "crashes"

// byChance begins a difference that does not show each time: that it did not proves
// nothing.
const byChance = "by chance: "

// patience is how long a case may take, and one that is known to fail.
const (
	patience       = 30 * time.Second
	littlePatience = 3 * time.Second
)

func testContract(t *testing.T, server target, endpoint string) {
	t.Helper()
	for name := range differences {
		if !slices.ContainsFunc(contractCases, func(c contractCase) bool { return c.name == name }) {
			t.Errorf("differences names the case %q, which is none", name)
		}
	}
	for n, c := range contractCases {
		t.Run(c.name, func(t *testing.T) {
			instead, differs := differences[c.name][server]
			if strings.HasPrefix(instead, crashes) {
				t.Skip("a known difference: " + instead)
			}
			limit := patience
			if differs {
				limit = littlePatience
			}
			faults := record(t, limit, func(t testing.TB) {
				t.Helper()
				env := contract{
					Client: emulator.Dial(t, endpoint),
					t:      t,
					topic:  fmt.Sprintf("projects/p/topics/contract-%d", n),
					sub:    fmt.Sprintf("projects/p/subscriptions/contract-%d", n),
				}
				env.CreateTopic(env.topic)
				env.CreateSubscription(env.sub, env.topic, c.change...)
				c.test(env)
			})
			switch {
			case !differs:
				for _, f := range faults {
					t.Error(f)
				}
			case len(faults) == 0 && !strings.HasPrefix(instead, byChance):
				t.Errorf("a difference that is none any more: %q", instead)
			default:
				t.Logf("a known difference: %s %q", instead, faults)
			}
		})
	}
}

// longestFault cuts what holds the data of a message near a limit.
const longestFault = 500

// A recorder is a test whose faults are collected instead of reported.
type recorder struct {
	testing.TB
	ctx context.Context

	mu     sync.Mutex // guards faults
	faults []string
}

// record runs a test in a goroutine of its own, with a context that ends after a
// while, and returns its faults.
func record(t *testing.T, limit time.Duration, test func(testing.TB)) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r := &recorder{TB: t, ctx: ctx}
	done := make(chan struct{})
	go func() { // ends with the test, which ends with its context
		defer close(done)
		test(r)
	}()
	<-done
	return r.faults
}

func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Error(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fault := strings.TrimSpace(fmt.Sprintln(args...))
	if len(fault) > longestFault {
		fault = fault[:longestFault] + "…"
	}
	r.faults = append(r.faults, fault)
}

func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.faults) > 0
}

// contract is a topic and its subscription, on one of the servers.
type contract struct {
	*emulator.Client
	t          testing.TB
	topic, sub string
}

// A contractCase is one promise of the contract.
type contractCase struct {
	name   string
	test   func(contract)
	change []func(*pubsubpb.Subscription)
}

var contractCases = slices.Concat(deliveryCases, resourceCases, publishLimitCases, subscriptionCases)
