package source

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

// stamped is a delivery of a message, published now, with that attribute ts.
func stamped(ackID, id, ts string) *pubsubpb.ReceivedMessage {
	m := received(ackID, id, time.Now())
	m.Message.Attributes = map[string]string{"ts": ts}
	return m
}

func withTimestamps(c *Config) { c.TimestampAttribute = "ts" }

// A watermark that followed the publish time had every record of a device that was
// offline dropped as late.
func TestEventTime_TheWatermarkFollowsTheAttribute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, withTimestamps)
		defer f.end()
		a := f.begin()
		old := time.Now().Add(-3 * time.Hour)
		f.service.send <- []*pubsubpb.ReceivedMessage{
			stamped("a1", "m1", old.Add(time.Minute).Format(time.RFC3339Nano)),
			stamped("a2", "m2", old.Format(time.RFC3339Nano)),
		}
		pass(time.Minute)
		if w := f.watermark(time.Now()); !w.Equal(old) {
			t.Errorf("while they are buffered the watermark is %v, want %v", w, old)
		}
		ds, err := f.take(a, nil, 2, 1<<30)
		if err != nil || len(ds) != 2 || !ds[1].eventTime.Equal(old) {
			t.Fatalf("took %+v, error %v", ds, err)
		}
		pass(time.Second)
		if w := f.watermark(time.Now()); !w.Equal(old) {
			t.Errorf("while their bundle runs the watermark is %v, want %v", w, old)
		}
		f.finish(a, 2)
		f.signal(a, signalAt(1, 2))
		pass(f.config.WatermarkIdleTimeout + f.config.WatermarkLag)
		f.wantFollowing()
	})
}

// A message without a usable time is refused, holds the watermark by its publish
// time, and is emitted at that.
func TestReadFn_AMessageWithoutAnEventTimeIsADecodeFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPickyHarness(t, EmitFailed())
		defer h.close(t.Context())
		h.config.TimestampAttribute = "ts"
		r := h.opened(first, 0)
		now := time.Now()
		h.service.send <- []*pubsubpb.ReceivedMessage{
			stamped("a5", "m5", "1586390400123"), stamped("a6", "m6", "yesterday"), received("a7", "m7", now), stamped("a8", "m8", "1586390400123456789"),
		}
		synctest.Wait()
		p := h.process(r)
		p.want("m5")
		want := []string{"its value is neither an RFC 3339 time", "the message does not have it", "the time is outside of Beam's range"}
		if len(p.failed) != 3 {
			t.Fatalf("failed %+v", p.failed)
		}
		for i, f := range p.failed {
			if !strings.Contains(f.Error, `TimestampAttribute "ts": `+want[i]) || strings.Contains(f.Error, "yesterday") {
				t.Errorf("error %s, want %s", f.Error, want[i])
			}
			if !f.EventTime.Equal(now.Truncate(time.Millisecond)) {
				t.Errorf("emitted at %v, want the publish time %v", f.EventTime, now)
			}
		}
	})
}

// Seconds where milliseconds are expected land in 1970, where everything is late: it
// happened in silence.
func TestReadFn_C10_SecondsAreCountedAndWarnedOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPickyHarness(t, Fail())
		defer h.close(t.Context())
		h.config.TimestampAttribute = "ts"
		r := h.opened(first, 0)
		h.service.send <- []*pubsubpb.ReceivedMessage{stamped("a5", "m5", "1586390400"), stamped("a6", "m6", "1586390401"), stamped("a7", "m7", "1586390400000")}
		synctest.Wait()
		got := logged(t, func() { h.process(r).want("m5", "m6", "m7") })
		if strings.Count(got, "1970") != 1 || !strings.Contains(got, testSubscription) || !strings.Contains(got, "attribute=ts") || strings.Contains(got, "1586") {
			t.Errorf("warned of %s", got)
		}
		if n := h.group.counts.TimestampsInSeconds.Load(); n != 2 {
			t.Errorf("counted %d", n)
		}
	})
}

// The start of the year 1, which is Go's zero time, holds the watermark as any other.
func TestEventTime_TheZeroTimeIsATime(t *testing.T) {
	m := arrivals(t, stamped("a1", "m1", "0001-01-01T00:00:00Z"))[0].msg
	got, err := timestampOf(m, "ts")
	if err != nil || got.IsZero() || got.UnixMilli() != (time.Time{}).UnixMilli() {
		t.Errorf("%v, error %v", got, err)
	}
}

func withTimedRecords(c *Config) { c.timedRecords = true }

// Until a message is decoded nobody knows how old its records are.
func TestEventTime_C09_TheDecodersTimesAreCoveredByTheLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, withTimedRecords)
		defer f.end()
		a := f.begin()
		published := time.Now()
		f.service.send <- []*pubsubpb.ReceivedMessage{received("a1", "m1", published)}
		pass(time.Hour / 2) // Nobody takes it, and the watermark waits.
		wantAt := func(when string, want time.Time) {
			t.Helper()
			if w := f.watermark(time.Now()); !w.Equal(want) {
				t.Errorf("%s the watermark is %v, want %v", when, w, want)
			}
		}
		f.config.WatermarkHoldLimit = time.Hour
		wantAt("while it is buffered", published.Add(-f.config.WatermarkLag))
		f.takeIDs(a, 1)
		wantAt("while it is decoded", published.Add(-f.config.WatermarkLag))
		older := published.Add(-time.Hour)
		f.emittedAt(a, older)
		wantAt("once its record is known", older)
		f.finish(a, 1)
		pass(20 * time.Second)
		wantAt("until its bundle is finalized", older)
		f.signal(a, signalAt(1, 2))
		pass(f.config.WatermarkIdleTimeout)
		f.wantFollowing()
	})
}

func init() { RegisterDecoder(emitTwice) }

// A timed decoder's readers are told so, on any worker.
func TestReadFn_TellsTheReadersOfTimedRecords(t *testing.T) {
	name, err := checkDecoder(Config{}, emitTwice)
	if err != nil {
		t.Fatal(err)
	}
	nonce := nonceOf(t)
	fn := &readFn{settings{Decoder: name, Nonce: nonce}}
	g, err := fn.group(assignment{ReadNonce: nonce})
	if err != nil {
		t.Fatal(err)
	}
	defer g.forgetIfEmpty()
	if !g.config.timedRecords {
		t.Error("they are not told")
	}
	if fn.Decoder, _ = checkDecoder(Config{}, Message); fn.onWorker(Config{}).timedRecords {
		t.Error("a plain decoder's are told, too")
	}
}

func TestTryRead_ATimedDecoderGivesTheRecordsTheirType(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	records, err := TryRead(s, Config{Subscriptions: From(testSubscription)}, emitTwice)
	if err != nil {
		t.Fatal(err)
	}
	if got := records.Type().Type().String(); got != "*message.Message" {
		t.Errorf("the collection holds %s", got)
	}
}

func TestTryRead_TimedRecordsExcludeTheAttribute(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	_, err := TryRead(s, Config{Subscriptions: From(testSubscription), TimestampAttribute: "ts"}, emitTwice)
	if err == nil || !strings.Contains(err.Error(), `source.Config.TimestampAttribute: "ts": must be empty beside a decoder that emits source.Timed`) {
		t.Errorf("error %v", err)
	}
}

// What EmitFailed emits was acknowledged, and lost where nobody could see it.
func TestTryRead_EmitFailedNeedsTheSecondOutput(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	cfg := Config{Subscriptions: From(testSubscription), OnDecodeFailure: EmitFailed()}
	if _, err := TryRead(s, cfg, Message); err == nil || !strings.Contains(err.Error(), "source.EmitFailed(): needs source.ReadWithFailures") {
		t.Errorf("error %v", err)
	}
	for _, p := range []FailurePolicy{EmitFailed(), Fail(), Drop()} {
		cfg.OnDecodeFailure = p
		_, failed, err := TryReadWithFailures(s, cfg, Message)
		if err != nil {
			t.Fatal(err)
		}
		if got := failed.Type().Type().String(); got != "source.Failed" {
			t.Errorf("%s: the second collection holds %s", p, got)
		}
	}
}

func BenchmarkEmitOne(b *testing.B) {
	for name, attribute := range map[string]string{"publish time": "", "attribute": "ts"} {
		b.Run(name, func(b *testing.B) {
			g := newGroup("bench", Config{TimestampAttribute: attribute}, run.Binding{Rule: run.Finalized}, new(stats.Source))
			r := g.openLocked("reader", testSubscription, newFakeService().calls())
			defer r.close(b.Context())
			v := &visit{group: g, reader: r, emit: emitterOf(Message, func(beam.EventTime, beam.X) {})}
			m := arrivals(b, stamped("a1", "m1", "2024-05-06T07:08:09.123Z"))[0].msg
			b.ReportAllocs()
			for b.Loop() {
				at, timed := r.eventTime(m)
				d := delivery{msg: m, eventTime: at, untimed: !timed}
				if err := v.emitOne(b.Context(), &d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
