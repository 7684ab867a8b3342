package verify

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLatencies_PercentilesAreThoseOfASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l latencies
		all := rapid.SliceOfN(rapid.Int64Range(0, int64(2*time.Hour)), 1, 300).Draw(t, "all")
		for _, v := range all {
			l.add(time.Duration(v))
		}
		slices.Sort(all)
		for _, p := range []float64{0, 50, 90, 99, 100} {
			want := all[max(int(math.Ceil(float64(len(all))*p/100))-1, 0)]
			got := int64(l.percentile(p))
			if got < want || float64(got) > float64(want)*(1+1.0/subBuckets)+1 {
				t.Fatalf("p%v is %d, want %d and 1.6 %% more at most", p, got, want)
			}
		}
		if l.most != time.Duration(all[len(all)-1]) || l.percentile(100) != l.most {
			t.Fatalf("most %v, p100 %v", l.most, l.percentile(100))
		}
	})
}

func TestLatencies_BucketsMeet(t *testing.T) {
	for i := range len(latencies{}.buckets) - 1 {
		end := upperEnd(i)
		if bucketOf(end-1) != i || bucketOf(end) != i+1 {
			t.Fatalf("bucket %d ends at %d, which is in %d, and what is before in %d", i, end, bucketOf(end), bucketOf(end-1))
		}
	}
	if got := bucketOf(math.MaxInt64); got != len(latencies{}.buckets)-1 {
		t.Errorf("the longest duration is in bucket %d of %d", got, len(latencies{}.buckets))
	}
}

// Every message is in a bar, and in a column, whatever its latency.
func TestLatencies_NothingIsLeftOutOfTheHistograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l latencies
		for _, v := range rapid.SliceOfN(rapid.Int64(), 1, 50).Draw(t, "all") {
			l.add(time.Duration(v))
		}
		var inBars, inColumns int64
		for _, b := range l.bars() {
			inBars += b.Count
		}
		columns := l.columns()
		for i, c := range columns {
			inColumns += c.Count
			if i > 0 && c.From != columns[i-1].To {
				t.Fatalf("a column begins at %v, the one before ends at %v", c.From, columns[i-1].To)
			}
		}
		if inBars != l.count || inColumns != l.count {
			t.Fatalf("%d in bars, %d in columns, of %d", inBars, inColumns, l.count)
		}
	})
}

func TestPrintLatency(t *testing.T) {
	var l latencies
	l.add(-time.Second) // Clocks disagree.
	for range 1500 {
		l.add(1500 * time.Microsecond)
	}
	for range 3000 {
		l.add(3 * time.Millisecond)
	}
	l.add(11 * time.Millisecond)
	var out bytes.Buffer
	printLatency(&out, &l)
	want := `latency  p50 3.01 ms   p90 3.01 ms   p99 3.01 ms   max 11 ms

      0 – 1 µs    ▏                                             1    0.0 %
`
	if got := out.String(); got[:len(want)] != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
	for _, row := range []string{
		"\n   1 ms – 2 ms    ████████████████████                      1,500   33.3 %\n",
		"\n   2 ms – 5 ms    ████████████████████████████████████████  3,000   66.6 %\n",
		"\n  10 ms – 20 ms   ▏                                             1    0.0 %\n",
	} {
		if !bytes.Contains(out.Bytes(), []byte(row)) {
			t.Errorf("no row %q in:\n%s", row, out.String())
		}
	}
}

func TestPretty(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1: "0 µs", 1500: "1.5 µs", 12345: "12.3 µs", 999 * time.Microsecond: "999 µs",
		time.Millisecond: "1 ms", 12345 * time.Microsecond: "12.3 ms", 20 * time.Millisecond: "20 ms",
		time.Second: "1 s", 1234 * time.Second: "1,234 s", 3015 * time.Microsecond: "3.02 ms",
	} {
		if got := pretty(d); got != want {
			t.Errorf("%d is %q, want %q", d, got, want)
		}
	}
}
