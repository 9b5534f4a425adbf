package key

import (
	"bytes"
	"slices"
	"unsafe"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Set holds the keys of one document, sorted, each once. It is reused from document to document; its slices are good until then.
type Set struct {
	// Multikey has bit i set if the path of field i went through an array, or ended at one.
	Multikey uint32
	// Exists says whether any of the fields existed.
	Exists bool
	// Arrays are the paths at which a wildcard's walk met an array.
	Arrays []string

	enc     encoder
	entries []entry
	fields  []cursor
}

// entry is a key and its trailer as places in the encoder's buffers, which move while they grow.
type entry struct{ key, keyEnd, trailer, trailerEnd int }

// cursor is how far the walk of one field has come.
type cursor struct {
	at     bson.RawValue // where the rest of the path starts, or the field's value
	part   int           // the first part of the rest
	leaf   bool          // at is an array's element: if it is an array itself, it is a value
	done   bool          // at is the value
	expand bool          // at is an array to go through
}

// Len is the number of keys.
func (s *Set) Len() int { return len(s.entries) }

// Key is key i.
func (s *Set) Key(i int) []byte { return s.enc.dst[s.entries[i].key:s.entries[i].keyEnd] }

// Trailer is what key i forgets; mostly empty.
func (s *Set) Trailer(i int) []byte {
	return s.enc.trailer[s.entries[i].trailer:s.entries[i].trailerEnd]
}

func (s *Set) reset(fields int) {
	s.Multikey, s.Exists, s.Arrays = 0, false, s.Arrays[:0]
	s.enc.dst, s.enc.trailer = s.enc.dst[:0], s.enc.trailer[:0]
	s.entries = s.entries[:0]
	s.fields = slices.Grow(s.fields[:0], fields)[:fields]
}

// Keys puts into s the keys that an index of this pattern holds of doc.
//
//   - A missing field is null. A path that leads through a value other than a document or an array is missing.
//   - An array gives a key per element, at the end of a path and on its way; an element on the way that is no document is missing.
//     An empty array at the end is undefined, on the way it is missing. An array directly in an array is not gone through.
//   - A number in the path of an array names its element, if it has one there; if an element that is a document has a field of
//     that name as well, that is error 16746. (So an index on such a path does not say all about null that Walk says.)
//   - Fields may share one array, then each element gives one compound key. Two different arrays are CannotIndexParallelArrays.
//   - Arrays under a hashed field are error 16766.
//   - A wildcard's keys are those that Wild tells.
func (p Pattern) Keys(s *Set, doc bson.Raw) error {
	if err := p.keys(s, doc); err != nil {
		return err
	}
	if len(s.entries) > 1 {
		less := func(a, b entry) int { return bytes.Compare(s.enc.dst[a.key:a.keyEnd], s.enc.dst[b.key:b.keyEnd]) }
		slices.SortStableFunc(s.entries, less)
		s.entries = slices.CompactFunc(s.entries, func(a, b entry) bool { return less(a, b) == 0 })
	}
	return nil
}

// SortKey appends the key by which a sort of this pattern places doc: the least of its keys. For an ascending field that is the
// least element of an array, for a descending one the greatest.
func (p Pattern) SortKey(dst []byte, s *Set, doc bson.Raw) ([]byte, error) {
	if err := p.keys(s, doc); err != nil {
		if mongoerr.Is(err, mongoerr.CannotIndexParallelArrays) {
			return dst, mongoerr.BadValue.Errorf("cannot sort with keys that are parallel arrays")
		}
		return dst, err
	}
	least := 0
	for i := range s.entries {
		if bytes.Compare(s.Key(i), s.Key(least)) < 0 {
			least = i
		}
	}
	return append(dst, s.Key(least)...), nil
}

func (p Pattern) keys(s *Set, doc bson.Raw) error {
	s.reset(len(p.Fields))
	s.enc.coll = p.Collation
	if p.Wild != nil {
		p.Wild.keys(s, p.Fields[0].Kind, doc)
		return nil
	}
	root := value.Document(doc)
	for i := range s.fields {
		s.fields[i] = cursor{at: root}
	}
	return p.expand(s)
}

// expand goes on with every field that is not done. If none meets an array the fields are one key; otherwise it goes through the
// array, with a copy of the cursors for each element.
func (p Pattern) expand(s *Set) error {
	var array bson.RawValue
	for i := range s.fields {
		c := &s.fields[i]
		if err := c.walk(p.Fields[i].Path); err != nil {
			return err
		}
		if !c.expand {
			continue
		}
		s.Multikey |= 1 << i
		switch {
		case p.Fields[i].Kind == Hashed:
			return mongoerr.Code(16766).Errorf("hashed indexes do not currently support array values. Found array at path: %s", p.Fields[i].Path)
		case array.Type == 0:
			array = c.at
		case unsafe.SliceData(array.Value) != unsafe.SliceData(c.at.Value):
			return mongoerr.CannotIndexParallelArrays.Errorf("cannot index parallel arrays [%s] and [%s]", s.arrayField(p,
				array), lastName(p, i, c.part))
		}
	}
	if array.Type == 0 {
		s.emit(p)
		return nil
	}
	before := slices.Clone(s.fields)
	empty := true
	for it := value.Elements(array.Value); it.Next(); empty = false {
		copy(s.fields, before)
		for i := range s.fields {
			if c := &s.fields[i]; c.expand {
				c.at, c.leaf, c.expand = it.Value(), true, false
			}
		}
		if err := p.expand(s); err != nil {
			return err
		}
	}
	if empty {
		for i := range s.fields {
			c := &s.fields[i]
			if !c.expand {
				continue
			}
			c.at, c.done, c.expand = value.Missing, true, false
			if c.part == p.Fields[i].Path.Len() {
				c.at.Type = bson.TypeUndefined
			}
		}
		s.emit(p)
	}
	return nil
}

// arrayField names the first field that waits at array, for the message.
func (s *Set) arrayField(p Pattern, array bson.RawValue) string {
	for i, c := range s.fields {
		if c.expand && unsafe.SliceData(c.at.Value) == unsafe.SliceData(array.Value) {
			return lastName(p, i, c.part)
		}
	}
	return ""
}

func lastName(p Pattern, field, part int) string {
	return p.Fields[field].Path.Part(max(part-1, 0)).Name
}

// walk follows the path until it has the value or an array to go through.
func (c *cursor) walk(path value.Path) error {
	for !c.done && !c.expand {
		end := c.part == path.Len()
		switch {
		case c.at.Type == bson.TypeArray && !c.leaf:
			if !end {
				if stepped, err := c.index(path); err != nil {
					return err
				} else if stepped {
					continue
				}
			}
			c.expand = true
		case end:
			c.done = true
		case c.at.Type == bson.TypeEmbeddedDocument:
			c.at = value.Lookup(c.at.Value, path.Part(c.part).Name)
			c.part++
			c.leaf = false
		default:
			c.at, c.done = value.Missing, true
		}
	}
	return nil
}

// index steps into the element that the next part names, if it names one.
func (c *cursor) index(path value.Path) (bool, error) {
	part := path.Part(c.part)
	element := value.At(c.at.Value, part.Index)
	if element.Type == 0 {
		return false, nil
	}
	for it := value.Elements(c.at.Value); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeEmbeddedDocument && value.Lookup(v.Value, part.Name).Type != 0 {
			return false, mongoerr.Code(16746).Errorf("Ambiguous field name found in array (do not use numeric field names in embedded elements "+
				"in an array), field: '%s' for array: %s", part.Name, value.Brief(c.at, 200))
		}
	}
	c.at = element
	c.part++
	return true, nil
}

// emit makes a key of the fields' values.
func (s *Set) emit(p Pattern) {
	e := &s.enc
	n := entry{key: len(e.dst), trailer: len(e.trailer)}
	e.guesses, e.exists = 0, false
	for i := range s.fields {
		e.field(p.Fields[i].Kind, s.fields[i].at)
	}
	s.Exists = s.Exists || e.exists
	if p.Sparse && !e.exists {
		e.dst, e.trailer = e.dst[:n.key], e.trailer[:n.trailer]
		return
	}
	n.keyEnd, n.trailerEnd = len(e.dst), len(e.trailer)
	s.entries = append(s.entries, n)
}
