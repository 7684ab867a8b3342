package publish

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A process-wide worker of a dependency of the Google API libraries.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}
