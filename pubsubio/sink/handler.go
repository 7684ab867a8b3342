package sink

import (
	"context"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/reflectx"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/byname"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/panics"
)

// A FailureHandler disposes of a record that failed, which is the handler's to
// keep. When it returns nil, it has: the sink will not mention the record again. An
// error or a panic fails the bundle.
//
// It is called by the bundle's goroutine, and from several bundles at once, when
// the failure is found: at the record itself, at a later one, or at the bundle's end.
// ctx is the bundle's; what is still batching waits meanwhile. A bundle that fails is
// run again, and the handler may then see a record twice.
type FailureHandler func(ctx context.Context, f Failed) error

// A registeredHandler is a function as the DoFn calls it.
type registeredHandler struct {
	name   string // as a user knows it
	handle FailureHandler
}

// call calls the handler and turns its panic into an error.
func (h *registeredHandler) call(ctx context.Context, f Failed) (err error) {
	defer panics.Recover(&err, "failure handler", h.name)
	return h.handle(ctx, f)
}

// handlers are the registered failure handlers of this program, by key, for the
// reason that encoders are.
var handlers byname.Registry[*registeredHandler]

// RegisterHandler makes handle known to the workers. Call it in init, once for each
// handler, with a function that has a name of its own. It panics as
// [RegisterEncoder] does.
func RegisterHandler(handle FailureHandler) {
	key, err := handlerKey(handle)
	if err == nil {
		err = handlers.Add(key, handle, &registeredHandler{name: reflectx.FunctionName(handle), handle: handle})
	}
	if err != nil {
		panic("sink.RegisterHandler: " + err.Error())
	}
}

func handlerKey(handle FailureHandler) (string, error) {
	return byname.Key(handle, reflect.TypeFor[Failed]())
}
