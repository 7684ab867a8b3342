package dlq

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"go.uber.org/goleak"
)

const (
	testTopic = "projects/p/topics/letters"
	testSub   = "projects/p/subscriptions/letters"
	elsewhere = "projects/p/topics/orders"
)

var (
	owners sync.Map // by *testing.T, which is one run of a test
	runs   atomic.Int64
)

// ownerOf is t's name for what the process keeps by name: each run of a test has another,
// so that it finds nothing of one before (-count).
func ownerOf(t *testing.T) string {
	t.Helper()
	name, _ := owners.LoadOrStore(t, fmt.Sprint(t.Name(), "#", runs.Add(1)))
	return name.(string)
}

func TestMain(m *testing.M) {
	flag.Parse()
	beam.Init()
	code := m.Run()
	if err := goleak.Find(
		// A process-wide worker of a dependency of the Google API libraries.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"),
		// Prism's job server, one for the process.
		goleak.IgnoreAnyFunction("github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism/internal/jobservices.(*Server).Serve"),
	); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
