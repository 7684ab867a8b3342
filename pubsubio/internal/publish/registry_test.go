package publish

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// emulator is a configuration that connects lazily, to nothing.
func emulator(t *testing.T) Config {
	t.Helper()
	return Config{Connection: options.Connection{EmulatorEndpoint: "127.0.0.1:1"}, Nonce: t.Name()}
}

func mustOpen(t *testing.T, c Config) *Bundle {
	t.Helper()
	b, err := Open(c, Handlers{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func registeredPools() int {
	pools.mu.Lock()
	defer pools.mu.Unlock()
	return len(pools.entries)
}

func TestOpen_SharesAPoolByConfigurationAndNonce(t *testing.T) {
	c := emulator(t)
	other := c
	other.Nonce += "2"
	a, b, apart := mustOpen(t, c), mustOpen(t, c), mustOpen(t, other)
	if a.pool != b.pool {
		t.Error("equal configurations have two pools")
	}
	if a.pool == apart.pool {
		t.Error("two writes share a pool")
	}
	for _, b := range []*Bundle{a, b, apart} {
		mustFinish(t, b)
	}
	for _, c := range []Config{c, other} {
		if err := Close(c); err != nil {
			t.Error(err)
		}
	}
	if n := registeredPools(); n != 0 {
		t.Errorf("%d pools left", n)
	}
}

func TestClose_LeavesAPoolWithOpenBundles(t *testing.T) {
	c := emulator(t)
	a := mustOpen(t, c)
	if err := Close(c); err != nil {
		t.Fatal(err)
	}
	mustFinish(t, a)
	b := mustOpen(t, c)
	if a.pool != b.pool {
		t.Error("Close took a pool away from under an open bundle")
	}
	b.Drop()
	for range 2 {
		if err := Close(c); err != nil {
			t.Fatal(err)
		}
	}
	again := mustOpen(t, c)
	if again.pool == a.pool {
		t.Error("Open found a closed pool")
	}
	mustFinish(t, again)
	if err := Close(c); err != nil {
		t.Fatal(err)
	}
}

// Nothing calls Teardown on most runners: an unused pool kept its connection for
// ever.
func TestOpen_AnUnusedPoolClosesItself(t *testing.T) {
	c := emulator(t)
	c.IdleTimeout = 10 * time.Millisecond
	b := mustOpen(t, c)
	mustFinish(t, b)
	<-b.pool.ctx.Done()
	b = mustOpen(t, c) // another one
	if b.pool.ctx.Err() != nil {
		t.Error("Open found a closed pool")
	}
	mustFinish(t, b)
	if err := Close(c); err != nil {
		t.Error(err)
	}
}

// A pool whose timer fired just as it was used again was closed under its next
// user, connection and all.
func TestOpen_AnIdleTimerThatFiredBeforeTheLastUseClosesNothing(t *testing.T) {
	c := emulator(t).withDefaults()
	b := mustOpen(t, c)
	mustFinish(t, b)
	pools.entry(c).closeUnused(c) // as from a timer that had fired before
	if b.pool.ctx.Err() != nil {
		t.Error("closed a pool that was used just now")
	}
	if err := Close(c); err != nil {
		t.Error(err)
	}
}

func TestPool_IdleTimeoutCountsFromTheLastUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idled := 0
		answer, release := hold()
		o := options.Publisher{RetryInitialRPCTimeout: options.Disabled}
		p := newPool(Config{Nonce: t.Name(), Publisher: o, IdleTimeout: time.Minute}.withDefaults(), (&fakeService{answer: answer}).wire(), func() { idled++ })
		a := open(t, p)
		pass(time.Hour)
		mustAdd(t, a, "a")
		pass(time.Second) // its request is on the wire
		a.Drop()
		pass(2 * time.Minute)
		if idled != 0 {
			t.Error("idle with a request on the wire")
		}
		release(nil)
		pass(59 * time.Second)
		b := open(t, p)
		pass(2 * time.Minute)
		if idled != 0 {
			t.Error("idle with an open bundle")
		}
		b.Drop()
		pass(61 * time.Second)
		synctest.Wait()
		if idled != 1 {
			t.Errorf("idle %d times, want once", idled)
		}
		p.shutDown()
	})
}

// Requests that only dropped bundles sent end with their pool, at once.
func TestClose_CancelsWhatDroppedBundlesLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, _ := hold()
		p := newPool(Config{Nonce: t.Name()}.withDefaults(), (&fakeService{answer: answer}).wire(), func() {})
		b := open(t, p)
		mustAdd(t, b, "a")
		pass(time.Second)
		b.Drop()
		if !p.closeIf(func() bool { return true }) {
			t.Fatal("not closed")
		}
		began := time.Now()
		if !p.shutDown() || time.Since(began) != 0 {
			t.Errorf("shutDown took %v", time.Since(began))
		}
	})
}

func TestClose_GivesUpAfterShutdownTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		p := newPool(Config{Nonce: t.Name()}.withDefaults(), wire{send: func(context.Context, *payload, int) error { <-stuck; return nil }, hangUp: func() {}}, func() {})
		b := open(t, p)
		mustAdd(t, b, "a")
		pass(time.Second)
		b.Drop()
		p.closeIf(func() bool { return true })
		began := time.Now()
		if p.shutDown() || time.Since(began) != 30*time.Second {
			t.Errorf("shutDown took %v", time.Since(began))
		}
		close(stuck)
	})
}

func TestOpen_TriesTheCredentialsAgain(t *testing.T) {
	c := Config{Connection: options.Connection{ServiceAccountKeyFile: filepath.Join(t.TempDir(), "sekrit.json")}, Nonce: t.Name()}
	for range 2 {
		_, err := Open(c, Handlers{})
		if err == nil || !strings.Contains(err.Error(), "service account key file") || strings.Contains(err.Error(), "sekrit") {
			t.Fatalf("Open: %v", err)
		}
		if n := registeredPools(); n != 0 {
			t.Errorf("%d pools left", n)
		}
		if err := os.WriteFile(c.Connection.ServiceAccountKeyFile, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
