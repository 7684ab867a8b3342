package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

// A letter that is read again counts once, and lines are bounded, whatever comes.
func TestSurvey_IsBounded(t *testing.T) {
	s := newSurvey()
	for range 2 {
		for i := range 3 * maxLines {
			s.add(dlq.Entry{ID: fmt.Sprint(i), Destination: fmt.Sprintf("projects/p/topics/t%d", i)}, "projects/p/topics/x", "")
		}
	}
	letters, chosen := s.counts()
	if letters != 3*maxLines || chosen != letters {
		t.Errorf("%d letters, %d chosen", letters, chosen)
	}
	lines := s.all()
	var sum int64
	for _, l := range lines {
		sum += l.Letters
	}
	if len(lines) != maxLines+1 || sum != letters {
		t.Errorf("%d lines of %d letters", len(lines), sum)
	}
	if last := lines[len(lines)-1]; last.Destination != "(others)" || last.Letters != 2*maxLines {
		t.Errorf("the last line is %+v", last)
	}
}

func TestSurvey_Table(t *testing.T) {
	s := newSurvey()
	s.add(dlq.Entry{ID: "1", Destination: orders, Error: "one\nline", Time: yesterday}, orders, "")
	s.add(dlq.Entry{ID: "2", Destination: orders, Error: strings.Repeat("ö", 100), Time: yesterday.Add(time.Minute)}, orders, "")
	s.add(dlq.Entry{ID: "3", Destination: refunds, Error: "publish to " + refunds + ": x"}, orders, "")
	s.add(dlq.Entry{ID: "4"}, "", "no dead letter")
	var b strings.Builder
	printLines(&b, s.all(), "SENT TO")
	want := strings.Join([]string{
		"LETTERS  DESTINATION                GIVEN UP (UTC)                              LAST ERROR                                        SENT TO",
		"2        projects/p/topics/orders   2026-03-01 12:00:00 to 2026-03-01 12:01:00  " + strings.Repeat("ö", 45) + "...  there",
		"1        projects/p/topics/refunds  -                                           x                                                 projects/p/topics/orders",
		"1        -                          -                                           -                                                 left: no dead letter",
		"",
	}, "\n")
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
