package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

func TestRestriction_CoderRoundTrip(t *testing.T) {
	want := restriction{Version: version, Token: "t", Parent: "p", Mode: settling, Left: -1, Deadline: 7}
	b, err := encodeRestriction(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeRestriction(b); err != nil || got != want {
		t.Errorf("got %+v, error %v, want %+v", got, err, want)
	}
}

// C27: a job is updated while its restrictions live on. The files hold what the
// first build wrote, and this one must neither read nor write them otherwise.
func TestRestriction_C27_ReadsAndWritesVersion1AsEver(t *testing.T) {
	b := golden(t, "restriction_v1.json")
	want := restriction{Version: 1, Token: "a", Parent: "b", Mode: settling, Left: 5, Deadline: 6}
	if got, err := decodeRestriction(b); err != nil || got != want {
		t.Errorf("read %+v, error %v, want %+v", got, err, want)
	}
	if got, err := encodeRestriction(want); err != nil || !bytes.Equal(got, b) {
		t.Errorf("wrote %s, error %v, want %s", got, err, b)
	}
	b = golden(t, "assignment_v1.json")
	a := assignment{Version: 1, ReadNonce: "r", ReaderNonce: "q", Subscription: "s", Split: 2}
	if got, err := decodeAssignment(b); err != nil || got != a {
		t.Errorf("read %+v, error %v, want %+v", got, err, a)
	}
	if got, err := encodeAssignment(a); err != nil || !bytes.Equal(got, b) {
		t.Errorf("wrote %s, error %v, want %s", got, err, b)
	}
}

func golden(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b)
}

// C27: what a newer build of the same version has added survives a visit to this
// one.
func TestRestriction_C27_KeepsWhatANewerBuildAdded(t *testing.T) {
	for name, pass := range map[string]func([]byte) ([]byte, error){
		"restriction": func(b []byte) ([]byte, error) {
			r, err := decodeRestriction(b)
			if err != nil {
				return nil, err
			}
			r.Token = "changed"
			return encodeRestriction(r)
		},
		"assignment": func(b []byte) ([]byte, error) {
			a, err := decodeAssignment(b)
			if err != nil {
				return nil, err
			}
			return encodeAssignment(a)
		},
	} {
		out, err := pass([]byte(`{"v":1,"colour":{"hue":[1,2.50]},"token":"a","":null}`))
		var got map[string]any
		if err := errors.Join(err, json.Unmarshal(out, &got)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, ok := got[""]; !ok || !strings.Contains(string(out), `"colour":{"hue":[1,2.50]}`) {
			t.Errorf("%s became %s", name, out)
		}
		if name == "restriction" && (got["token"] != "changed" || strings.Count(string(out), "token") != 1) {
			t.Errorf("%s became %s", name, out)
		}
	}
}

// C27: so it does through a bundle.
func TestReadFn_C27_ResidualKeepsWhatANewerBuildAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newReadHarness(t, run.Finalized)
		defer h.close(t.Context())
		r, err := decodeRestriction([]byte(`{"v":1,"left":-1,"colour":"red"}`))
		if err != nil {
			t.Fatal(err)
		}
		p := h.process(r)
		p.end("")
		if b, err := encodeRestriction(*p.residual); err != nil || !strings.Contains(string(b), `"colour":"red"`) {
			t.Errorf("the residual is %s, error %v", b, err)
		}
	})
}

func TestRestriction_RefusesANewerVersion(t *testing.T) {
	for _, b := range []string{`{"v":2}`, `{"v":0}`, `{}`} {
		if _, err := decodeRestriction([]byte(b)); err == nil || !strings.Contains(err.Error(), "update the workers") {
			t.Errorf("%s: error %v", b, err)
		}
	}
}

func FuzzDecodeRestriction(f *testing.F) {
	for _, seed := range []string{
		`{"v":1,"token":"a","left":-1}`, `{"v":1,"more":{"a":[1]}}`, `{"V":1,"":0}`, `{"v":1,"<":"\ud800","\u212aey":1}`, `null`, `[]`, `{"v":1e0}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRestriction(b)
		if err != nil {
			return
		}
		again, err := encodeRestriction(r)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeRestriction(again); err != nil || back != r {
			t.Errorf("%+v became %+v, error %v", r, back, err)
		}
	})
}

func TestTracker_SplitsOnlyAfterTheDecisionToResume(t *testing.T) {
	tr := &tracker{restriction: restriction{Token: "T"}}
	for _, fraction := range []float64{0, 0.5, 1} {
		if _, residual, err := tr.TrySplit(fraction); residual != nil || err != nil {
			t.Errorf("a split at %v gave %v, error %v, before the decision", fraction, residual, err)
		}
	}
	if !tr.TryClaim(resumeAt(restriction{Token: "A", Parent: "T"})) {
		t.Fatal("resuming was refused")
	}
	if _, residual, _ := tr.TrySplit(0.5); residual != nil {
		t.Error("a split at a half gave a residual, which prism schedules before the commit")
	}
	if tr.IsDone() {
		t.Error("done before the residual was taken")
	}
	primary, residual, err := tr.TrySplit(0)
	if err != nil || primary != any(restriction{Token: "T"}) || residual != any(restriction{Token: "A", Parent: "T"}) {
		t.Errorf("the split at zero gave %v and %v, error %v", primary, residual, err)
	}
	if !tr.IsDone() {
		t.Error("not done after the residual was taken")
	}
	if _, residual, _ := tr.TrySplit(0); residual != nil {
		t.Error("the residual was given twice")
	}
	if tr.TryClaim(finish{}) {
		t.Error("finished after it was resumed")
	}
}

func TestTracker_FinishLeavesNothing(t *testing.T) {
	tr := &tracker{}
	if !tr.TryClaim(finish{}) || !tr.IsDone() {
		t.Fatal("finishing was refused")
	}
	if _, residual, _ := tr.TrySplit(0); residual != nil {
		t.Error("a finished restriction has a residual")
	}
	if tr.TryClaim(resumeAt{}) {
		t.Error("resumed after it was finished")
	}
}
