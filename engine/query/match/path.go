package match

import "github.com/multiforadb/multiforadb/engine/value"

// slotMax is how many different first parts of paths one pass over a document can look for. Filters that name more fields
// look the further ones up one by one.
const slotMax = 8

// path is a dotted path, and how to walk it.
type path struct {
	parts []value.Part
	// slot is the position of the first part among the names of the filter, or -1. Only a path that begins at the document
	// has one.
	slot int
	// whole is set for the tests that look at an array and never at its elements.
	whole bool
	// element marks the empty path of a test inside of $elemMatch: the element itself.
	element bool
}

func newPath(s string, whole bool) *path {
	return &path{parts: value.ParsePath(s).Parts(), slot: -1, whole: whole}
}
