package windowcount

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// minute is the window that begins so many minutes after began.
func minute(n int) span {
	at := began.Add(time.Duration(n) * time.Minute)
	return span{at, at.Add(time.Minute)}
}

func TestBoard_AddsUpOrTakesTheLast(t *testing.T) {
	for _, accumulating := range []bool{false, true} {
		b := newBoard(accumulating)
		for range 5 {
			b.admit()
		}
		b.add(minute(0), "eu", 2)
		b.add(minute(0), "eu", 3)
		want := int64(5)
		if accumulating {
			want = 3
		}
		v := b.view(10, 3)
		if v.rows[0].total != want || v.all.total != want || lateOf(b) != 5-want {
			t.Errorf("accumulating %v: %+v, late %d; want %d", accumulating, v, lateOf(b), want)
		}
	}
}

func TestBoard_ShowsTheLatestWindowsAndTheLargestLabels(t *testing.T) {
	b := newBoard(false)
	for i := range 6 {
		for j := range 4 {
			b.add(minute(5-i), fmt.Sprint("label-", j), int64(1000*j+i))
		}
	}
	v := b.view(2, 2)
	want := "            window (UTC)  label-3  label-2  others   total\n" +
		"2026-03-01 12:04 – 12:05    3,001    2,001   1,002   6,004\n" +
		"           12:05 – 12:06    3,000    2,000   1,000   6,000\n" +
		"                     all   18,015   12,015   6,030  36,060\n"
	if got := v.table(80, true); got != want {
		t.Errorf("table:\n%swant:\n%s", got, want)
	}
	want = "            window (UTC)  label-3  others  total\n" +
		"2026-03-01 12:04 – 12:05    3,001   3,003  6,004\n" +
		"           12:05 – 12:06    3,000   3,000  6,000\n"
	if got := v.table(52, false); got != want {
		t.Errorf("narrow table:\n%swant:\n%s", got, want)
	}
}

func TestBoard_TellsWhatHasChangedOnce(t *testing.T) {
	b := newBoard(false)
	b.add(minute(0), "eu", 1000)
	b.add(minute(1), "eu", 1)
	b.add(minute(1), "us", 2)
	if got, want := b.takeChanged(1).sentences(), "2026-03-01 12:00 – 12:01  1,000  eu 1,000\n2026-03-01 12:01 – 12:02  3  eu 1  others 2\n"; got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
	b.add(minute(1), "us", 2)
	if got, want := b.takeChanged(2).sentences(), "2026-03-01 12:01 – 12:02  5  eu 1  us 4\n"; got != want {
		t.Errorf("%swant:\n%s", got, want)
	}
	if got := b.takeChanged(2).sentences(); got != "" {
		t.Errorf("nothing has changed: %s", got)
	}
}

// Nobody knows any more what of such a pane was counted: the late ones came out negative.
func TestBoard_AWindowThatHasLeftIsNotCountedTwice(t *testing.T) {
	b := newBoard(true)
	for range 6 {
		b.admit()
	}
	b.add(minute(0), "a", 5)
	for i := range maxCells + 1 {
		b.admit()
		b.add(minute(1+i/1000), fmt.Sprint(i%1000), 1)
	}
	before := b.view(-1, 1).all.total
	if late, known := b.late(); late != 1 || !known || b.left == 0 {
		t.Fatalf("late %d, known %v; %d windows left", late, known, b.left)
	}
	b.add(minute(0), "a", 6)
	if _, known := b.late(); known {
		t.Error("what is late counts as known")
	}
	if all := b.view(-1, 1).all.total; all != before {
		t.Errorf("%d counted before, %d with the pane", before, all)
	}
	if r := newReport(b, pubsubio.Counts{}, time.Second, false); r.Late != nil {
		t.Errorf("reported late: %d", *r.Late)
	}
}

// Windows without end, labels without end: memory has one.
func TestBoard_LetsGoOfTheOldest(t *testing.T) {
	b := newBoard(false)
	labels := make([]string, 1000)
	for i := range labels {
		labels[i] = fmt.Sprint(i)
	}
	n := maxCells/len(labels) + 7
	for i := range n {
		for _, label := range labels {
			b.admit()
			b.add(minute(i), label, 1)
		}
	}
	v := b.view(-1, 1)
	if b.cells > maxCells || len(v.rows) != n-7 || v.rows[0].span != minute(7) || b.left != 7 {
		t.Errorf("%d cells, %d windows from %v on, %d left", b.cells, len(v.rows), v.rows[0].span, b.left)
	}
	last, all := b.last(3)
	if v.all.total != int64(n*len(labels)) || lateOf(b) != 0 || len(last) != 3 || all != int64(n) {
		t.Errorf("%d in all, %d late, %d of %d windows", v.all.total, lateOf(b), len(last), all)
	}
}

// A label that is different each time, as a request's id is, was kept for ever and sorted
// for each redraw.
func TestBoard_FoldsRareLabelsIntoTheOthers(t *testing.T) {
	b := newBoard(false)
	n := 0
	for range 3*maxLabels + 1 {
		b.add(minute(n/1000), fmt.Sprint("request-", n), 1)
		if n++; n%10 == 0 {
			b.add(minute(n/1000), "often", 1)
		}
		if n%20 == 0 {
			b.add(minute(n/1000), "less often", 1)
		}
	}
	if len(b.totals) > maxLabels {
		t.Errorf("%d labels are kept", len(b.totals))
	}
	v := b.view(1, 2)
	often, less := int64(n/10), int64(n/20)
	if fmt.Sprint(v.labels) != "[often less often]" || fmt.Sprint(v.all.counts) != fmt.Sprint([]int64{often, less}) || v.all.others != int64(n) || v.all.total != int64(n)+often+less {
		t.Errorf("%v: %+v", v.labels, v.all)
	}
	// Few labels are left to be told of, and others all the same.
	if v := b.view(1, maxLabels); !v.others || v.all.others == 0 {
		t.Errorf("others %v: %d", v.others, v.all.others)
	}
}

func TestLeading_IsTheBeginningOfWhatIsSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOf(rapid.IntRange(0, 20)).Draw(t, "all")
		n := rapid.IntRange(0, 8).Draw(t, "n")
		got := leading(slices.Values(all), n, cmp.Compare[int])
		slices.Sort(all)
		if want := all[:min(n, len(all))]; !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// What a redraw takes while it holds up counting, with all that a board keeps.
func BenchmarkBoard_View(b *testing.B) {
	board := newBoard(false)
	for i := range maxCells {
		board.add(minute(i/100), fmt.Sprint(i%maxLabels), int64(i%7))
	}
	b.ReportAllocs()
	for b.Loop() {
		board.view(liveRows, 5)
	}
}

func TestView_NamesItsWindowsAlike(t *testing.T) {
	at := func(start, end time.Duration) row { return row{span: span{began.Add(start), began.Add(end)}} }
	for want, rows := range map[string][]row{
		"12:00 – 12:01, 12:01 – 12:02":                             {at(0, time.Minute), at(time.Minute, 2*time.Minute)},
		"12:00:00 – 12:00:30, 12:01:00 – 12:01:30":                 {at(0, 30*time.Second), at(time.Minute, 90*time.Second)},
		"12:00:00.000 – 12:00:01.000, 12:00:00.250 – 12:00:01.250": {at(0, time.Second), at(250*time.Millisecond, 1250*time.Millisecond)},
		"12:00 – 2026-03-02 12:00":                                 {at(0, 24*time.Hour)},
		"23:30 – 00:30":                                            {at(690*time.Minute, 750*time.Minute)},
	} {
		v := view{rows: rows}
		var names []string
		for _, r := range rows {
			names = append(names, r.name(v.layout()))
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A label is somebody else's text: it must not move the cursor, nor the columns.
func TestShortened(t *testing.T) {
	for label, want := range map[string]string{
		"": "(none)", "eu": "eu", "a\x1b[2Jb\nc": "a?[2Jb?c", "\xff": "?",
		strings.Repeat("ä", 20): strings.Repeat("ä", 20), strings.Repeat("ä", 21): strings.Repeat("ä", 19) + "…",
	} {
		if got := shortened(label); got != want {
			t.Errorf("%q is %q, want %q", label, got, want)
		}
	}
}

func TestShow_ATableThatLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := newBoard(false)
		stop := show(program.NewTerminal(&out), settings{top: 3}, b)
		advance(program.RedrawEvery + program.RedrawEvery/2)
		b.add(minute(0), "eu", 5)
		advance(program.RedrawEvery)
		stop()
		want := "no window has counted yet\n" +
			"\x1b[1A\x1b[J            window (UTC)  eu  total\n2026-03-01 12:00 – 12:01   5      5\n                     all   5      5\n" +
			"\x1b[3A\x1b[J"
		if out.String() != want {
			t.Errorf("drew %q, want %q", out.String(), want)
		}
	})
}

// advance moves the bubble's clock by d and waits until all is quiet.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual: the bubble's clock, not the machine's
	synctest.Wait()
}

func TestView_ALineFallsToZeroBetweenWindowsThatAreApart(t *testing.T) {
	b := newBoard(false)
	for _, n := range []int{0, 1, 5, 7} {
		b.add(minute(n), "eu", 3)
	}
	v := b.view(-1, 1)
	l := v.line("eu", settings{window: time.Minute}, func(r row) int64 { return r.counts[0] })
	var got []string
	for i, at := range l.Times {
		got = append(got, fmt.Sprintf("%v=%d", at.Sub(began).Minutes(), l.Counts[i]))
	}
	if want := "[0=3 1=3 2=0 4=0 5=3 6=0 7=3]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Minute: "1m", time.Hour: "1h", 90 * time.Minute: "1h30m", 10 * time.Second: "10s", 250 * time.Millisecond: "250ms", 90 * time.Second: "1m30s", 10 * time.Minute: "10m",
	} {
		if got := short(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func lateOf(b *board) int64 {
	late, _ := b.late()
	return late
}
