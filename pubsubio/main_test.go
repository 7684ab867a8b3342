package pubsubio

import (
	"flag"
	"os"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
)

// The level of Beam's log is set before the first pipeline runs and never again: Prism's
// workers read the variable without a lock, and go on for a while after their job's end.
func TestMain(m *testing.M) {
	flag.Parse()
	log.LogLevel = "warn"
	beam.Init()
	os.Exit(m.Run())
}
