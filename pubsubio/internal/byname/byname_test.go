package byname

import (
	"reflect"
	"strings"
	"testing"
)

func plain(string) int { return 0 }

func other(string) int { return 1 }

func generic[T, U any](T) (u U) { return u }

type receiver struct{}

func (receiver) method(string) int { return 0 }

var text = reflect.TypeFor[string]()

func TestKey_NamesAFunctionAndItsRecord(t *testing.T) {
	key, err := Key(plain, text)
	if err != nil || !strings.HasSuffix(key, "byname.plain string") {
		t.Errorf("key %q, error %v", key, err)
	}
}

func TestKey_RefusesWhatHasNoName(t *testing.T) {
	captured := 0
	for name, f := range map[string]func(string) int{
		"closure":      func(string) int { return captured },
		"method value": receiver{}.method,
		"nil":          nil,
	} {
		if _, err := Key(f, text); err == nil {
			t.Errorf("a %s has a key", name)
		}
	}
}

func func1(string) int { return 1 }

func funcs(string) int { return 1 }

var variable = func(string) int { return 1 }

func outer() (inner, nested func(string) int) {
	inner = func(string) int { nested = func(string) int { return 2 }; return 1 }
	inner("")
	return inner, nested
}

// A function declared as funcs, or as func1, was refused as a closure.
func TestKey_TellsClosuresByTheirPlace(t *testing.T) {
	for _, f := range []func(string) int{func1, funcs, generic[string, int]} {
		if key, err := Key(f, text); err != nil {
			t.Errorf("key %q, error %v", key, err)
		}
	}
	inner, nested := outer()
	for name, f := range map[string]func(string) int{"variable": variable, "closure": inner, "nested closure": nested} {
		if key, err := Key(f, text); err == nil {
			t.Errorf("a %s has the key %q", name, key)
		}
	}
}

func TestRegistry_FindsWhatWasAdded(t *testing.T) {
	var r Registry[int]
	if err := r.Add("k", plain, 7); err != nil {
		t.Fatal(err)
	}
	if err := r.Add("k", plain, 7); err != nil {
		t.Errorf("the same function cannot be added twice: %v", err)
	}
	if v, ok := r.Find("k"); !ok || v != 7 {
		t.Errorf("found %v, %v", v, ok)
	}
	if _, ok := r.Find("none"); ok {
		t.Error("found what was never added")
	}
	if err := r.Add("k", other, 8); err == nil {
		t.Error("another function took the key")
	}
}

// The instances of a generic function share their name.
func TestRegistry_TellsInstancesThatDifferElsewhereApart(t *testing.T) {
	a, b := generic[string, int], generic[string, bool]
	ka, err := Key(a, text)
	if err != nil {
		t.Fatal(err)
	}
	kb, _ := Key(b, text)
	var r Registry[int]
	if err := r.Add(ka, a, 1); err != nil {
		t.Fatal(err)
	}
	if err := r.Registered(kb, b, "x.Register"); err == nil {
		t.Error("an instance passes for another one, which is registered")
	}
	if err := r.Registered(ka, a, "x.Register"); err != nil {
		t.Error(err)
	}
	if err := r.Add(kb, b, 2); ka == kb && err == nil {
		t.Error("two instances share a key and the second was taken")
	}
}

// Instances for two types of pointers share their code, but for what calls it.
func TestRegistry_TellsInstancesOfPointersApart(t *testing.T) {
	a, b := generic[string, *int], generic[string, *bool]
	key, err := Key(a, text)
	if err != nil {
		t.Fatal(err)
	}
	var r Registry[int]
	if err := r.Add(key, a, 1); err != nil {
		t.Fatal(err)
	}
	if err := r.Registered(key, b, "x.Register"); err == nil {
		t.Error("an instance passes for another one, which is registered")
	}
}

func TestRegistered_SaysWhatToCall(t *testing.T) {
	var r Registry[int]
	key, err := Key(plain, text)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Registered(key, plain, "x.Register")
	if err == nil || !strings.HasSuffix(err.Error(), "byname.plain is not registered: call x.Register with it in init") {
		t.Errorf("error %v", err)
	}
}
