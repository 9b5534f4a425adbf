package value

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Path is a dotted path, split once.
type Path struct {
	text  string
	parts []Part
}

// Part is one name of a path.
type Part struct {
	Name  string
	Index int // the position in an array that Name is, in its only decimal spelling; else -1
}

// ParsePath splits a dotted path. Every string is a path; what a place forbids (empty names, dollars) is its own to check.
func ParsePath(s string) Path {
	p := Path{text: s, parts: make([]Part, 0, strings.Count(s, ".")+1)}
	for name := range strings.SplitSeq(s, ".") {
		p.parts = append(p.parts, Part{Name: name, Index: ArrayIndex(name)})
	}
	return p
}

// ArrayIndex is the array position that name spells in decimal without leading zeros, or -1.
func ArrayIndex(name string) int {
	if len(name) == 0 || len(name) > 9 || len(name) > 1 && name[0] == '0' {
		return -1
	}
	n := 0
	for i := range len(name) {
		c := name[i] - '0'
		if c > 9 {
			return -1
		}
		n = n*10 + int(c)
	}
	return n
}

func (p Path) String() string { return p.text }

// Len is the number of parts, at least 1 for a parsed path.
func (p Path) Len() int { return len(p.parts) }

// Part is part i.
func (p Path) Part(i int) Part { return p.parts[i] }

// Parts are all parts; they must not be changed.
func (p Path) Parts() []Part { return p.parts }

// HasPrefix says whether q's parts are the first of p's.
func (p Path) HasPrefix(q Path) bool {
	if len(q.parts) > len(p.parts) {
		return false
	}
	for i := range q.parts {
		if p.parts[i].Name != q.parts[i].Name {
			return false
		}
	}
	return true
}

// Get walks p through documents and, by numeric parts, through arrays, and nothing else: the one place that an update names. It
// is Missing if there is none.
func Get(doc []byte, p Path) bson.RawValue {
	v := Lookup(doc, p.parts[0].Name)
	for _, part := range p.parts[1:] {
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			v = Lookup(v.Value, part.Name)
		case bson.TypeArray:
			v = At(v.Value, part.Index)
		default:
			return Missing
		}
	}
	return v
}

// Leaf says what a walk does with an array that the path ends at.
type Leaf uint8

const (
	LeafBoth  Leaf = iota // each element, then the array: equality and order conditions
	LeafArray             // the array only: $size, $elemMatch, $type of arrays, $exists
)

// Walk gives f each value that p reaches in doc as MongoDB's filters see it, until f says stop by returning true; Walk returns
// whether it did. A path that ends in nothing gives Missing, since null conditions look for it.
//
//   - An array on the way is gone through: each element that is a document is entered, the others give nothing, not even
//     Missing. Arrays directly in arrays are not gone through.
//   - If the next part is a number it names an element of that array as well, after the elements' own fields of that name.
//     An element that a number names is not expanded if the path ends there, even if it is an array.
//   - An array at the end of the path gives each of its elements and then itself, or only itself, as leaf says.
//
// index is the position in the outermost array that was gone through, which a positional operator refers to, or -1.
func Walk(doc []byte, p Path, leaf Leaf, f func(v bson.RawValue, index int) bool) bool {
	w := walker{parts: p.parts, leaf: leaf, f: f}
	return w.document(doc, 0, -1)
}

type walker struct {
	parts []Part
	leaf  Leaf
	f     func(v bson.RawValue, index int) bool
}

// document looks for the parts from i on in doc.
func (w *walker) document(doc []byte, i, index int) bool {
	for {
		v := Lookup(doc, w.parts[i].Name)
		i++
		switch {
		case v.Type == bson.TypeArray:
			return w.array(v, i, index)
		case i == len(w.parts):
			return w.f(v, index)
		case v.Type != bson.TypeEmbeddedDocument:
			return w.f(Missing, index)
		}
		doc = v.Value
	}
}

// array goes through the elements of v for the parts from i on.
func (w *walker) array(v bson.RawValue, i, index int) bool {
	end := i == len(w.parts)
	if end && w.leaf == LeafArray {
		return w.f(v, index)
	}
	want := -1
	if !end {
		want = w.parts[i].Index
	}
	n := 0
	for it := Elements(v.Value); it.Next(); n++ {
		at := index
		if at < 0 {
			at = n
		}
		switch {
		case end:
			if w.f(it.val, at) {
				return true
			}
			continue
		case it.val.Type == bson.TypeEmbeddedDocument:
			if w.document(it.val.Value, i, at) {
				return true
			}
		}
		if n != want {
			continue
		}
		switch last := i+1 == len(w.parts); {
		case last:
			if w.f(it.val, index) {
				return true
			}
		case it.val.Type == bson.TypeEmbeddedDocument:
			if w.document(it.val.Value, i+1, index) {
				return true
			}
		case it.val.Type == bson.TypeArray:
			if w.array(it.val, i+1, index) {
				return true
			}
		}
	}
	return end && w.f(v, index)
}
