package key

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Wild is what a wildcard index covers: the paths at and below Base, or, if it is "", those that a projection leaves, which are all
// but _id if there is none.
//
// Its entries have two fields, the path as a string and the value: one entry for each value in the document that is no document and no
// array. Paths go through arrays without naming elements. An empty document is a value, an empty array is undefined, an array directly
// in an array is a value as a whole. No path leads to a field with a dot in its name: it counts as one without a name that is undefined,
// so that a document has an entry even if it has no other fields.
type Wild struct {
	Base      string
	inclusive bool     // paths are all that is covered
	paths     []string // else all that is not
}

// WildPathField is what explain calls the first field of a wildcard's entries.
const WildPathField = "$_path"

var emptyDocument = [5]byte{5}

func cutWildcard(name string) (base string, ok bool) {
	if name == "$**" {
		return "", true
	}
	return strings.CutSuffix(name, ".$**")
}

func newWild(base string) *Wild {
	w := &Wild{Base: base, paths: []string{"_id"}}
	if base != "" {
		w.inclusive, w.paths = true, []string{base}
	}
	return w
}

// Project applies a wildcardProjection. It includes or excludes; only _id may go its own way, and is not covered unless it is
// included.
func (w *Wild) Project(projection bson.Raw) error {
	if w.Base != "" {
		return mongoerr.FailedToParse.Errorf("The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}")
	}
	if len(projection) <= len(emptyDocument) {
		return mongoerr.FailedToParse.Errorf("The 'wildcardProjection' field can't be an empty object")
	}
	var in, out []string
	if err := projected("", projection, &in, &out); err != nil {
		return err
	}
	id := slices.Contains(in, "_id")
	isID := func(path string) bool { return path == "_id" }
	others, rest := slices.DeleteFunc(slices.Clone(in), isID), slices.DeleteFunc(out, isID)
	switch {
	case len(others) > 0 && len(rest) > 0:
		return mongoerr.Code(31254).Errorf("Cannot do exclusion on field %s in inclusion projection", rest[0])
	case len(rest) > 0, len(in) == 0: // {_id: 0} alone excludes
		w.inclusive, w.paths = false, rest
		if !id {
			w.paths = append(w.paths, "_id")
		}
	default:
		w.inclusive, w.paths = true, in
	}
	return nil
}

func projected(prefix string, doc bson.Raw, in, out *[]string) error {
	for it := value.Elements(doc); it.Next(); {
		path, v := prefix+string(it.Name()), it.Value()
		switch {
		case v.Type == bson.TypeBoolean || value.IsNumber(v.Type):
			if err := checkPath(path, value.ParsePath(path)); err != nil {
				return err
			}
			list := out
			if value.Truth(v) {
				list = in
			}
			*list = append(*list, path)
		case v.Type == bson.TypeEmbeddedDocument && len(v.Value) > len(emptyDocument) && !strings.HasPrefix(firstName(v.Value), "$"):
			if err := projected(path+".", bson.Raw(v.Value), in, out); err != nil {
				return err
			}
		default:
			return mongoerr.FailedToParse.Errorf("a wildcardProjection includes and excludes paths, and does nothing else: %s: %s", path, value.Brief(v, 200))
		}
	}
	return nil
}

func firstName(doc []byte) string {
	it := value.Elements(doc)
	it.Next()
	return string(it.Name())
}

// below says whether path is parent or leads through it.
func below(path, parent string) bool {
	return strings.HasPrefix(path, parent) && (len(path) == len(parent) || path[len(parent)] == '.')
}

// Covers says whether every value at path has its entry; whole, whether those below it have theirs, too.
func (w *Wild) Covers(path string) (covers, whole bool) {
	whole = true
	for _, p := range w.paths {
		switch {
		case below(path, p):
			return w.inclusive, w.inclusive
		case below(p, path):
			whole = false
		}
	}
	return !w.inclusive, whole && !w.inclusive
}

// enters says whether something below path may be covered.
func (w *Wild) enters(path string) bool {
	if covers, _ := w.Covers(path); covers {
		return true
	}
	return w.inclusive && slices.ContainsFunc(w.paths, func(p string) bool { return below(p, path) })
}

// Pattern is the pattern of the entries that are about path.
func (w *Wild) Pattern(path string, kind Kind) Pattern {
	return Pattern{Fields: []Field{{Path: value.ParsePath(WildPathField)}, {Path: value.ParsePath(path), Kind: kind}}, Sparse: true}
}

func (w *Wild) keys(s *Set, kind Kind, doc bson.Raw) {
	k := wildWalk{Wild: w, set: s, kind: kind}
	k.document("", doc)
}

type wildWalk struct {
	*Wild
	set  *Set
	kind Kind
}

func (w *wildWalk) document(path string, doc []byte) {
	for it := value.Elements(doc); it.Next(); {
		name, v := string(it.Name()), it.Value()
		if strings.IndexByte(name, '.') >= 0 {
			name, v = "", bson.RawValue{Type: bson.TypeUndefined}
		}
		if path != "" {
			name = path + "." + name
		}
		if w.enters(name) {
			w.value(name, v, false)
		}
	}
}

func (w *wildWalk) value(path string, v bson.RawValue, inArray bool) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		if len(v.Value) > len(emptyDocument) {
			w.document(path, v.Value)
			return
		}
	case bson.TypeArray:
		if inArray {
			break
		}
		w.set.Multikey |= 1
		if !slices.Contains(w.set.Arrays, path) {
			w.set.Arrays = append(w.set.Arrays, path)
		}
		it := value.Elements(v.Value)
		empty := true
		for ; it.Next(); empty = false {
			w.value(path, it.Value(), true)
		}
		if !empty {
			return
		}
		v = bson.RawValue{Type: bson.TypeUndefined}
	}
	if covers, _ := w.Covers(path); !covers {
		return
	}
	w.set.Exists = true
	e := &w.set.enc
	n := entry{key: len(e.dst), trailer: len(e.trailer)}
	e.guesses = 0
	e.note(guess)
	e.dst = append(e.dst, tagString)
	e.text([]byte(path)) // no collation is about paths
	e.field(w.kind, v)
	n.keyEnd, n.trailerEnd = len(e.dst), len(e.trailer)
	w.set.entries = append(w.set.entries, n)
}
