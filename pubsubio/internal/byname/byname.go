// Package byname lets functions of the user travel to the workers. A worker
// makes a DoFn anew from its JSON, which cannot hold a function: it holds the
// name under which the program has registered it in init.
package byname

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/reflectx"
)

// closure matches the names that the compiler gives to closures, after that of
// the function or the variable that holds them: outer.func1, outer.func1.2,
// glob..func3. A function whose own name begins so has nothing before it.
var closure = regexp.MustCompile(`\.func\d+(\.|$)`)

// Key names the function f that works on records of type record. The type is
// part of the key, because the instances of a generic function share the name.
//
// It is an error where f is nil, a closure or a method value, whose names tell
// nothing.
func Key(f any, record reflect.Type) (string, error) {
	if reflect.ValueOf(f).IsNil() {
		return "", errors.New("the function is nil")
	}
	name := reflectx.FunctionName(f)
	_, local, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ".") // behind the package
	if closure.MatchString(local) || strings.HasSuffix(local, "-fm") {
		return "", fmt.Errorf("%s is a closure or a method value: workers find a function by its name, so give one declared at package level", name)
	}
	return name + " " + record.String(), nil
}

// A Registry holds what functions were registered as, by key. The zero value is
// empty and ready.
type Registry[V any] struct{ entries sync.Map }

type entry[V any] struct {
	code  uintptr
	value V
}

// Add registers f as value. Registering the same function twice does nothing; it
// is an error where another function has the key already: instances of a generic
// function that differ in something else than the record.
func (r *Registry[V]) Add(key string, f any, value V) error {
	e := entry[V]{reflect.ValueOf(f).Pointer(), value}
	if other, loaded := r.entries.LoadOrStore(key, e); loaded && other.(entry[V]).code != e.code {
		return fmt.Errorf("another function is registered as %s: declare one that calls this instance, and register that", key)
	}
	return nil
}

// Registered returns nil where f is what was added under key, and otherwise what
// is to be done about it, beginning with f's name. register is what a user calls
// to add a function, as "sink.RegisterEncoder".
//
// It is for where a pipeline is built: an instance of a generic function that was
// not registered would otherwise be served by another one, which has its name.
func (r *Registry[V]) Registered(key string, f any, register string) error {
	e, ok := r.entries.Load(key)
	if !ok {
		return fmt.Errorf("%s is not registered: call %s with it in init", reflectx.FunctionName(f), register)
	}
	if e.(entry[V]).code != reflect.ValueOf(f).Pointer() {
		return fmt.Errorf("%s is not the instance that is registered under this name: declare a function that calls this one, and call %s with it in init",
			reflectx.FunctionName(f), register)
	}
	return nil
}

// Find returns what was registered under key. It is for the workers, which have
// nothing but the key.
func (r *Registry[V]) Find(key string) (V, bool) {
	e, ok := r.entries.Load(key)
	if !ok {
		var none V
		return none, false
	}
	return e.(entry[V]).value, true
}
