package dlq

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nothing has what a queue must have, and does none of it.
type nothing struct{}

func (nothing) Validate() error                              { return nil }
func (nothing) Open(context.Context, string) (Writer, error) { return nil, errors.New("never opened") }
func (nothing) Close(string) error                           { return nil }

type (
	byValue   struct{ nothing }
	byPointer struct {
		nothing
		Limit int
	}
	withName struct {
		nothing
		Name  string
		Limit int64
	}
	unregistered struct{ nothing }
	withoutJSON  struct {
		nothing
		C chan int
	}
)

func init() {
	Register[byValue]()
	Register[*byPointer]()
	Register[withName]()
	Register[withName]() // twice is harmless
	Register[withoutJSON]()
}

// A worker has nothing but the JSON of the transform.
func TestQueue_TravelsAsJSON(t *testing.T) {
	for _, q := range []Queue{byValue{}, &byPointer{Limit: 3}, withName{Name: "a\u00e4", Limit: 1 << 60}} {
		e, err := EncodeQueue(q)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var there Encoded
		if err := json.Unmarshal(b, &there); err != nil {
			t.Fatal(err)
		}
		got, err := DecodeQueue(there)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(q, got, cmp.AllowUnexported(byValue{}, byPointer{}, withName{})); diff != "" {
			t.Errorf("%T (-want +got):\n%s", q, diff)
		}
	}
}

func TestEncodeQueue_SaysWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		q    Queue
		want string
	}{
		"nil":          {nil, "the dead-letter queue is nil"},
		"nil pointer":  {(*byPointer)(nil), "the dead-letter queue is a nil *dlq.byPointer"},
		"unregistered": {unregistered{}, "the dead-letter queue's type dlq.unregistered is not registered: call dlq.Register[dlq.unregistered]() in init"},
		"a pointer":    {&withName{}, "the dead-letter queue's type *dlq.withName is not registered: call dlq.Register[*dlq.withName]() in init"},
		"no name":      {struct{ nothing }{}, "the dead-letter queue's type struct { dlq.nothing } has no name: workers find a type by its name"},
		"no JSON":      {withoutJSON{}, "the dead-letter queue has no JSON: json: unsupported type: chan int"},
	} {
		if _, err := EncodeQueue(c.q); err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
}

func TestDecodeQueue_NamesTheCallThatIsMissingOnTheWorker(t *testing.T) {
	_, err := DecodeQueue(Encoded{Type: "main.queue"})
	if want := "dead-letter queue main.queue is not registered on this worker: call dlq.Register with it in init, not in main"; err == nil || err.Error() != want {
		t.Errorf("DecodeQueue: %v, want %s", err, want)
	}
	e, err := EncodeQueue(withName{})
	if err != nil {
		t.Fatal(err)
	}
	e.Config = json.RawMessage(`{"Limit":"x"}`)
	if _, err := DecodeQueue(e); err == nil || !strings.Contains(err.Error(), "dlq.withName: read its configuration: ") {
		t.Errorf("DecodeQueue: %v", err)
	}
}

func TestRegister_PanicsWithATypeThatHasNoName(t *testing.T) {
	for name, register := range map[string]func(){
		"no name":   Register[struct{ nothing }],
		"interface": Register[Queue],
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "dlq.Register: ") {
					t.Errorf("%s: panicked with %v", name, text)
				}
			}()
			register()
		}()
	}
}
