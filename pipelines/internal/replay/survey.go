package replay

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

const (
	// maxLines is how many lines a survey has; what belongs to none of them is in a last
	// one together.
	maxLines = 200
	// maxSeen is how many letters a survey knows apart. One that is read again, because
	// its bundle failed or its lease lapsed, counts once among those, which take some
	// 40 MB.
	maxSeen = 1 << 20
	// maxErrorText is how many runes of an error a table shows.
	maxErrorText = 48
)

// A survey is which letters were read, and what becomes of them.
type survey struct {
	mu      sync.Mutex
	seed    maphash.Seed
	seen    map[uint64]struct{}
	lines   map[lineKey]*line
	letters int64 // all
	chosen  int64
}

// lineKey is what letters of one line have in common.
type lineKey struct{ from, to, why string }

// A line is letters of the same way, as the table and the report show them.
type line struct {
	// Destination is where the letters were to go, or came from.
	Destination string `json:"destination"`
	// Topic is where they go; empty where they are left, because of Left.
	Topic string `json:"topic,omitempty"`
	Left  string `json:"left_because,omitempty"`
	// Letters is how many they are, given up between First and Last.
	Letters int64     `json:"letters"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	// Error is why the last of them was given up.
	Error string `json:"last_error"`
}

func newSurvey() *survey {
	return &survey{seed: maphash.MakeSeed(), seen: make(map[uint64]struct{}), lines: make(map[lineKey]*line)}
}

// add takes in a letter that goes to a topic, or is left because of why.
func (s *survey) add(e dlq.Entry, topic, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := maphash.String(s.seed, e.ID)
	if _, again := s.seen[id]; again {
		return
	}
	if len(s.seen) < maxSeen {
		s.seen[id] = struct{}{}
	}
	s.letters++
	if topic != "" {
		s.chosen++
	}
	l := s.lineOf(e, topic, why)
	l.Letters++
	if !e.Time.IsZero() && (l.First.IsZero() || e.Time.Before(l.First)) {
		l.First = e.Time
	}
	if !e.Time.Before(l.Last) {
		l.Last, l.Error = e.Time, e.Error
	}
}

func (s *survey) lineOf(e dlq.Entry, topic, why string) *line {
	key := lineKey{e.Destination, topic, why}
	if s.lines[key] == nil && len(s.lines) >= maxLines {
		key = lineKey{from: "(others)", to: "", why: "(several ways)"}
	}
	l := s.lines[key]
	if l == nil {
		l = &line{Destination: key.from, Topic: key.to, Left: key.why}
		s.lines[key] = l
	}
	return l
}

// counts returns how many letters were read, and how many of them chosen.
func (s *survey) counts() (letters, chosen int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.letters, s.chosen
}

// all returns the lines, those that are replayed first, each kind by its number of
// letters.
func (s *survey) all() []line {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]line, 0, len(s.lines))
	for _, l := range s.lines {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b line) int {
		left := func(l line) int { return min(len(l.Left), 1) }
		return cmp.Or(cmp.Compare(left(a), left(b)), -cmp.Compare(a.Letters, b.Letters), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Left, b.Left))
	})
	return out
}

// printLines writes lines as a table; goes heads the column of the topics.
func printLines(w io.Writer, lines []line, goes string) {
	if len(lines) == 0 {
		fmt.Fprintln(w, "no letter has come; another reader, or a replay that was killed, may hold some")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "LETTERS\tDESTINATION\tGIVEN UP (UTC)\tLAST ERROR\t%s\n", goes)
	for _, l := range lines {
		to := l.Topic
		switch {
		case l.Left != "":
			to = "left: " + l.Left
		case to == l.Destination:
			to = "there"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", program.Grouped(l.Letters), cmp.Or(printable(l.Destination), "-"), l.givenUp(), l.lastError(), printable(to))
	}
	_ = t.Flush()
}

// givenUp is when, as a table shows it.
func (l line) givenUp() string {
	const layout = "2006-01-02 15:04:05"
	first, last := l.First.UTC().Format(layout), l.Last.UTC().Format(layout)
	switch {
	case l.First.IsZero():
		return "-"
	case first == last:
		return first
	}
	return first + " to " + last
}

// printable is text in one line, without what would move a terminal's cursor: a letter may
// be anybody's.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// lastError is why the last letter was given up, in one line of a table and without what
// another column says.
func (l line) lastError() string {
	runes := []rune(printable(strings.TrimPrefix(l.Error, "publish to "+l.Destination+": ")))
	if len(runes) > maxErrorText {
		return string(runes[:maxErrorText-3]) + "..."
	}
	return cmp.Or(string(runes), "-")
}
