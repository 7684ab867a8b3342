package program

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
)

// accounts are what Beam 2.77.0 and prism make of a DoFn's error.
const (
	inProcess = "job job-016 failed:\nbundle inst002 stage-002 failed:process bundle failed for instruction inst002 using plan stage-002 : while executing Process for Plan[stage-002]:\n" +
		"1: DataSource[S[stage-002_source@localhost:34209], i0] Out:8 Coder:W;cwv_n1<bytes;c0>!GWC \n" +
		"\tcaused by:\nsource failed processing data\n\tcaused by:\n" +
		"DoFn[UID:8, PID:ee3_processandsplit, Name: github.com/beam-pubsub/beam-pubsub-go/pubsubio/source.readFn] failed:\n"
	inFinish = "bundle inst001 stage-001 failed:process bundle failed for instruction inst001 using plan stage-001 : while executing FinishBundle for Plan[stage-001]:\n" +
		"4: ParDo[sink.writeFn] Out:[2] Sig: func(context.Context, mtime.Time) error, SideInputs: []\n\tcaused by:\n" +
		"DoFn[UID:4, PID:e3, Name: github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink.writeFn] failed:\n"
)

func TestCause_IsWithoutTheAccountOfTheBundle(t *testing.T) {
	const cause = "sink: publish to projects/p/topics/t: NotFound (1 attempt)\nand more"
	for _, account := range []string{"", inProcess, inFinish} {
		if got := Cause(errors.New(account + cause)); got != cause {
			t.Errorf("%q", got)
		}
	}
}

func TestLogTo_LeavesOutWhatIsToldAtTheEnd(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	for _, verbose := range []bool{false, true} {
		var log bytes.Buffer
		LogTo(&log, verbose)
		for _, say := range []func(){
			func() {
				slog.With("a", 1).WithGroup("g").Error("[SDK] process bundle failed for instruction inst002")
			},
			func() { slog.Warn("Control done", "error", context.Canceled) },
		} {
			say()
			if said := log.Len() > 0; said != verbose {
				t.Errorf("verbose %v: %s", verbose, log.String())
			}
			log.Reset()
		}
		slog.Error("control response channel closed")
		slog.Warn("source: acknowledgements are refused")
		if bytes.Count(log.Bytes(), []byte("\n")) != 2 {
			t.Errorf("verbose %v: %s", verbose, log.String())
		}
	}
}

func TestFailed_TellsTheCause(t *testing.T) {
	var b bytes.Buffer
	if code := Failed(&b, "relay", errors.New(inProcess+"source: x")); code != ExitFailed || b.String() != "relay failed: source: x\n" {
		t.Errorf("%d, %q", code, b.String())
	}
	Failed(io.Discard, "relay", errors.New(""))
}

// A run's error names fields of the packages below; its user has flags.
func TestFailed_OfAFrameSpeaksOfFlags(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	use := Use{Words: strings.NewReplacer("sink.Config.Topic", "--to")}
	f := Frame{
		Name: "test", Common: new(Common), Use: func() Use { return use },
		Validate: func() error { return nil },
		Stopping: func() string { return "" },
		Work: func(_ context.Context, screen *Console) int {
			return Failed(screen, "test", errors.New("sink.Config.Topic is gone, after 3 s (options.Publisher.PublishProgressTimeout is 2s)"))
		},
	}
	var stdout, stderr bytes.Buffer
	if code := f.Run(t.Context(), &stdout, &stderr); code != ExitFailed || stderr.String() != "test failed: --to is gone, after 3 s (the limit is 2s)\n" {
		t.Errorf("%d, %q", code, stderr.String())
	}
}
