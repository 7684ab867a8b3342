package keep

import (
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

func TestOutput_IsConsumedBehindAReshuffle(t *testing.T) {
	for _, element := range []any{[]byte("x"), 1, struct{ Name string }{"x"}} {
		outputIsConsumed(t, element)
	}
}

func outputIsConsumed(t *testing.T, element any) {
	t.Helper()
	p, s := beam.NewPipelineWithRoot()
	if err := Output(s, beam.Create(s, element)); err != nil {
		t.Fatal(err)
	}
	edges, _, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	shuffles, consumers := 0, 0
	for _, edge := range edges {
		if edge.Op == "Reshuffle" {
			shuffles++
		}
		if edge.DoFn != nil && strings.HasSuffix(edge.DoFn.Name(), "keep.discard") {
			consumers++
		}
	}
	if shuffles != 1 || consumers != 1 {
		t.Errorf("%d reshuffles and %d consumers of %v", shuffles, consumers, edges)
	}
}

func TestOutput_SaysWhatItCannotKeep(t *testing.T) {
	_, s := beam.NewPipelineWithRoot()
	if err := Output(s, beam.AddFixedKey(s, beam.Create(s, 1))); err == nil {
		t.Error("an output of pairs was kept")
	}
}
