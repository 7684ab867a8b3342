package pubsubtest

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// applyMask sets the fields of to that the paths of an update mask name, as they
// are in from. Only whole fields can be named, and only those that may change.
func applyMask(to, from proto.Message, paths, may []string) error {
	if len(paths) == 0 {
		return invalid("The update_mask in the request must be set, and must contain at least one field.")
	}
	dst, src := to.ProtoReflect(), from.ProtoReflect()
	for _, path := range paths {
		field := dst.Descriptor().Fields().ByName(protoreflect.Name(path))
		if field == nil || !slices.Contains(may, path) {
			return invalid("Invalid update_mask provided in the request: the field %q cannot be updated.", path)
		}
		if src.Has(field) {
			dst.Set(field, src.Get(field))
		} else {
			dst.Clear(field)
		}
	}
	return nil
}

// page returns the part of sorted names that a token and a size ask for, and the
// token of the next part: the last name of this one.
func page(names []string, token string, size int32) (part []string, next string, err error) {
	if size < 0 {
		return nil, "", invalid("Invalid page size: %s", strconv.Itoa(int(size)))
	}
	i, found := slices.BinarySearchFunc(names, token, strings.Compare)
	if found {
		i++
	}
	names = names[i:]
	if size == 0 || int(size) >= len(names) {
		return names, "", nil
	}
	return names[:size], names[size-1], nil
}
