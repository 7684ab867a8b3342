package pubsubtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// patience is how long a test waits for what does not come: long enough for a machine
// that is busy with others, and only a test that fails waits for it.
const patience = time.Minute

// patient returns a context that ends with the test, and with its patience.
func patient(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("it has not come within %v", patience))
}

// PublishData publishes messages with those data to a topic, as Publish does. An error
// ends the test.
func (s *Server) PublishData(t testing.TB, topic string, data ...string) {
	t.Helper()
	msgs := make([]*message.Message, len(data))
	for i, d := range data {
		msgs[i] = message.New([]byte(d))
	}
	if _, err := s.Publish(topic, msgs...); err != nil {
		t.Fatal(err)
	}
}

// WantPublished checks that the messages that were published to a topic are these, by
// their data: as often as they are given here, in any order, and nothing else. Messages
// has their attributes and keys. It needs a server that keeps all that is published.
func (s *Server) WantPublished(t testing.TB, topic string, data ...string) {
	t.Helper()
	s.wantData(t, topic, tally(data), func(got int) int { return got })
}

// WantDistinct is [Server.WantPublished] where each may have been published more than
// once: delivery is at least once, and a test that makes bundles fail, or answers get
// lost, sees that.
func (s *Server) WantDistinct(t testing.TB, topic string, data ...string) {
	t.Helper()
	want := tally(data)
	for d := range want {
		want[d] = 1
	}
	s.wantData(t, topic, want, func(got int) int { return min(got, 1) })
}

func (s *Server) wantData(t testing.TB, topic string, want map[string]int, count func(int) int) {
	t.Helper()
	if no := s.noTopic(topic); no != "" {
		t.Errorf("pubsubtest: %s", no)
		return
	}
	kept := s.Messages(topic)
	if n := s.Published(topic); n != int64(len(kept)) {
		t.Errorf("pubsubtest: %s: %d messages were published, and the server has kept %d: set Config.KeepPublished to Unlimited, as New does", topic, n, len(kept))
		return
	}
	var data []string
	for _, m := range kept {
		data = append(data, string(m.Data))
	}
	got := tally(data)
	var missing, unwanted []string
	for _, d := range slices.Sorted(maps.Keys(want)) {
		if n := want[d] - count(got[d]); n > 0 {
			missing = append(missing, times(n, d))
		}
	}
	for _, d := range slices.Sorted(maps.Keys(got)) {
		if n := count(got[d]) - want[d]; n > 0 {
			unwanted = append(unwanted, times(n, d))
		}
	}
	if len(missing)+len(unwanted) > 0 {
		t.Errorf("pubsubtest: %s: %d messages were published; missing: %s; not wanted: %s", topic, len(kept), listed(missing), listed(unwanted))
	}
}

func tally(data []string) map[string]int {
	counts := make(map[string]int)
	for _, d := range data {
		counts[d]++
	}
	return counts
}

func times(n int, d string) string {
	if n == 1 {
		return fmt.Sprintf("%.60q", d)
	}
	return fmt.Sprintf("%.60q %d times", d, n)
}

// maxListed is how many messages, or names, a failure tells of.
const maxListed = 10

func listed(data []string) string {
	switch n := len(data); {
	case n == 0:
		return "none"
	case n > maxListed:
		return fmt.Sprintf("%s and %d more", strings.Join(data[:maxListed], ", "), n-maxListed)
	}
	return strings.Join(data, ", ")
}

// WantAcknowledged checks that n messages of a subscription were acknowledged and that
// it has no other: none is outstanding and none waits.
func (s *Server) WantAcknowledged(t testing.TB, subscription string, n int64) {
	t.Helper()
	if got, ok := s.statsOf(t, subscription); ok && (got.Acknowledged != n || got.Outstanding != 0 || got.Backlog != 0) {
		t.Errorf("pubsubtest: %s: %d messages are acknowledged, %d outstanding, %d wait; want %d acknowledged and no other; it has %+v",
			subscription, got.Acknowledged, got.Outstanding, got.Backlog, n, got)
	}
}

// WantUnacknowledged checks that n messages of a subscription are still to be
// acknowledged, and that none is outstanding: what a pipeline has read and not finished,
// it has given back, and the next one gets it at once.
func (s *Server) WantUnacknowledged(t testing.TB, subscription string, n int64) {
	t.Helper()
	if got, ok := s.statsOf(t, subscription); ok && (got.Backlog != n || got.Outstanding != 0) {
		t.Errorf("pubsubtest: %s: %d messages wait, %d are outstanding; want %d that wait and none outstanding; it has %+v",
			subscription, got.Backlog, got.Outstanding, n, got)
	}
}

// WantOutstanding checks that n messages of a subscription are outstanding: delivered, and
// neither acknowledged nor returned yet, nor has their lease ended. A pipeline that runs
// holds them at that moment; Eventually waits for it.
func (s *Server) WantOutstanding(t testing.TB, subscription string, n int64) {
	t.Helper()
	if got, ok := s.statsOf(t, subscription); ok && got.Outstanding != n {
		t.Errorf("pubsubtest: %s: %d messages are outstanding, want %d; it has %+v", subscription, got.Outstanding, n, got)
	}
}

// statsOf returns the counts of a subscription. The test fails where there is none: all
// counts would be zero, which is what many a check asks for.
func (s *Server) statsOf(t testing.TB, subscription string) (Stats, bool) {
	t.Helper()
	if no := s.noSubscription(subscription); no != "" {
		t.Errorf("pubsubtest: %s", no)
		return Stats{}, false
	}
	return s.Stats(subscription), true
}

// noTopic says that there is no topic of that name, and which there are; "" if there is.
func (s *Server) noTopic(name string) string { return absent("topic", name, s.Topics()) }

// noSubscription is noTopic of a subscription.
func (s *Server) noSubscription(name string) string {
	return absent("subscription", name, s.Subscriptions())
}

func absent(kind, name string, have []string) string {
	if slices.Contains(have, name) {
		return ""
	}
	return fmt.Sprintf("there is no %s %q; there are: %s", kind, name, listed(have))
}

// Eventually waits until ok is true of a subscription's counts, as [Server.Await] does,
// for a minute at most, after which the test ends. It ends at once where there is no such
// subscription; Await is for one that is created while it waits.
func (s *Server) Eventually(t testing.TB, subscription string, ok func(Stats) bool) {
	t.Helper()
	if no := s.noSubscription(subscription); no != "" {
		t.Fatal("pubsubtest: " + no)
	}
	ctx, cancel := patient(t)
	defer cancel()
	if err := s.Await(ctx, subscription, ok); err != nil {
		t.Fatal(err)
	}
}

// EventuallyAcknowledged is [Server.Eventually] for n messages that are acknowledged, or
// more.
func (s *Server) EventuallyAcknowledged(t testing.TB, subscription string, n int64) {
	t.Helper()
	s.Eventually(t, subscription, func(got Stats) bool { return got.Acknowledged >= n })
}

// EventuallyPublished waits until n messages or more were published to a topic, for a
// minute at most, after which the test ends. It ends at once where there is no such
// topic; AwaitPublished is for one that is created while it waits.
func (s *Server) EventuallyPublished(t testing.TB, topic string, n int64) {
	t.Helper()
	if no := s.noTopic(topic); no != "" {
		t.Fatal("pubsubtest: " + no)
	}
	ctx, cancel := patient(t)
	defer cancel()
	if err := s.AwaitPublished(ctx, topic, n); err != nil {
		t.Fatal(err)
	}
}

// RunUntil runs a pipeline that does not end by itself until what until waits for has
// come, then ends its context, and returns its error: of pubsubio.Run that is
// pubsubio.ErrStopped, where it has ended cleanly. The test fails, and goes on, where run
// ends before that, or where until has waited for a minute.
//
//	err := pubsubtest.RunUntil(t,
//		func(ctx context.Context) error { return pubsubio.Run(ctx, p) },
//		func(ctx context.Context) error { return srv.AwaitPublished(ctx, topic, 3) })
func RunUntil(t testing.TB, run, until func(context.Context) error) error {
	t.Helper()
	running, stop := context.WithCancel(t.Context())
	defer stop()
	waiting, giveUp := patient(t)
	defer giveUp()
	ended := make(chan error, 1)
	go func() { // Ends with run, which is waited for below.
		ended <- run(running)
		giveUp()
	}()
	err := until(waiting)
	if err != nil {
		t.Errorf("pubsubtest: the pipeline has ended, or was stopped, before what it was to do was done: %v", err)
	}
	stop()
	return <-ended
}
