package update

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// paddingMax is how many nulls may fill the gap before an element set beyond the end of an array; MongoDB's limit.
const paddingMax = 1500000

// context is one application of an update.
type context struct {
	Context
	update *Update
	root   bson.Raw // the document as it was
}

// id shows the document's _id, for messages.
func (c *context) id() string {
	id := value.Lookup(c.root, "_id")
	if id.Type == 0 {
		return "{no id}"
	}
	return "{_id: " + value.Brief(id, 200) + "}"
}

// change appends what n makes of v. Type 0 says that nothing is there; then nothing is appended.
func (c *context) change(dst []byte, n *node, v bson.RawValue) (_ []byte, _ bson.Type, changed bool, _ error) {
	switch {
	case n.mod != nil:
		r, err := n.mod.modify(c, n.path, v)
		if err != nil {
			return dst, 0, false, err
		}
		return append(dst, r.Value...), r.Type, !value.Identical(v, r), nil
	case len(n.elements) > 0:
		if v.Type == 0 {
			return dst, 0, false, mongoerr.BadValue.Errorf("The path '%s' must exist in the document in order to apply array updates.", n.path)
		}
		if v.Type != bson.TypeArray {
			return dst, 0, false, mongoerr.BadValue.Errorf("Cannot apply array updates to non-array element %s: %s",
				lastName(n.path), value.Brief(v, 200))
		}
		dst, changed, err := c.elements(dst, n, v.Value)
		return dst, v.Type, changed, err
	}
	switch v.Type {
	case 0:
		return c.create(dst, n)
	case bson.TypeEmbeddedDocument:
		dst, changed, err := c.document(dst, n, v.Value)
		return dst, v.Type, changed, err
	case bson.TypeArray:
		dst, changed, err := c.array(dst, n, v)
		return dst, v.Type, changed, err
	}
	for _, f := range n.fields {
		if err := c.bar(n, f, v); err != nil {
			return dst, 0, false, err
		}
	}
	return append(dst, v.Value...), v.Type, false, nil
}

// document appends doc as the fields of n change it.
func (c *context) document(dst []byte, n *node, doc []byte) ([]byte, bool, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	changed := false
	var few [16]bool
	seen := few[:]
	if len(n.fields) > len(few) {
		seen = make([]bool, len(n.fields))
	}
	at, copied := 4, 4 // of doc: the element, and how far it has been copied
	for it := value.Elements(doc); it.Next(); {
		name, v := it.Name(), it.Value()
		from := at
		at += 2 + len(name) + len(v.Value)
		i := n.field(name)
		if i < 0 || seen[i] {
			continue
		}
		seen[i] = true
		dst = append(dst, doc[copied:from]...)
		copied = at
		element := len(dst)
		var t bson.Type
		var did bool
		var err error
		dst = append(append(append(dst, 0), name...), 0)
		if dst, t, did, err = c.change(dst, n.fields[i].node, v); err != nil {
			return dst, false, err
		}
		dst[element] = byte(t)
		if t == 0 {
			dst = dst[:element]
		}
		changed = changed || did
	}
	dst = append(dst, doc[copied:len(doc)-1]...)
	for i, f := range n.fields {
		if seen[i] {
			continue
		}
		element := len(dst)
		var t bson.Type
		var err error
		dst = append(append(append(dst, 0), f.name...), 0)
		if dst, t, _, err = c.change(dst, f.node, value.Missing); err != nil {
			return dst, false, err
		}
		dst[element] = byte(t)
		if t == 0 {
			dst = dst[:element]
		}
		changed = changed || t != 0
	}
	return finish(dst, start), changed, nil
}

// create appends a document of what n's fields make of nothing.
func (c *context) create(dst []byte, n *node) (_ []byte, _ bson.Type, changed bool, _ error) {
	start := len(dst)
	empty := []byte{5, 0, 0, 0, 0}
	dst, changed, err := c.document(dst, n, empty)
	if err != nil || !changed {
		return dst[:start], 0, false, err
	}
	return dst, bson.TypeEmbeddedDocument, true, nil
}

// bar is an error if field f of n, whose place is inside of v where no such field can be, would have to be created.
func (c *context) bar(n *node, f field, v bson.RawValue) error {
	_, t, _, err := c.change(nil, f.node, value.Missing)
	if err != nil || t == 0 {
		return err
	}
	return mongoerr.PathNotViable.Errorf("Cannot create field '%s' in element {%s: %s}", f.name, lastName(n.path), value.Brief(v, 200))
}

// array appends v as those of its elements change that n's fields name by number.
func (c *context) array(dst []byte, n *node, v bson.RawValue) ([]byte, bool, error) {
	fields := n.fields
	for len(fields) > 0 && fields[len(fields)-1].index < 0 {
		if err := c.bar(n, fields[len(fields)-1], v); err != nil {
			return dst, false, err
		}
		fields = fields[:len(fields)-1]
	}
	b := newArray(dst)
	changed := false
	for it := value.Elements(v.Value); it.Next(); {
		if len(fields) == 0 || fields[0].index != b.n {
			b.add(it.Value())
			continue
		}
		did, err := b.change(c, fields[0].node, it.Value())
		if err != nil {
			return b.bytes, false, err
		}
		changed = changed || did
		fields = fields[1:]
	}
	for _, f := range fields {
		made, t, _, err := c.change(nil, f.node, value.Missing)
		if err != nil {
			return b.bytes, false, err
		}
		if t == 0 {
			continue
		}
		if f.index-b.n > paddingMax {
			return b.bytes, false, mongoerr.CannotBackfillArray.Errorf("can't backfill more than %d elements of an array", paddingMax)
		}
		for b.n < f.index {
			b.add(value.Null)
		}
		b.add(bson.RawValue{Type: t, Value: made})
		changed = true
	}
	return b.finish(), changed, nil
}

// elements appends an array with those of its elements changed that n's conditions match.
func (c *context) elements(dst []byte, n *node, array []byte) ([]byte, bool, error) {
	b := newArray(dst)
	changed := false
	for it := value.Elements(array); it.Next(); {
		var does *node
		for _, e := range n.elements {
			if e.test != nil {
				doc := finish(appendElement([]byte{0, 0, 0, 0}, e.id, it.Value()), 0)
				ok, err := e.test(doc)
				if err != nil {
					return b.bytes, false, err
				}
				if !ok {
					continue
				}
			}
			if does == nil {
				does = e.node
				continue
			}
			var err error
			if does, err = merge(does, e.node); err != nil {
				return b.bytes, false, err
			}
		}
		if does == nil {
			b.add(it.Value())
			continue
		}
		did, err := b.change(c, does, it.Value())
		if err != nil {
			return b.bytes, false, err
		}
		changed = changed || did
	}
	return b.finish(), changed, nil
}

func lastName(path string) string {
	parts := value.ParsePath(path).Parts()
	return parts[len(parts)-1].Name
}

// array is an array being written.
type array struct {
	bytes []byte
	start int
	n     int
}

func newArray(dst []byte) array { return array{bytes: append(dst, 0, 0, 0, 0), start: len(dst)} }

// growArray goes on with an array as it stands.
func growArray(dst, old []byte) array {
	return array{bytes: append(dst, old[:len(old)-1]...), start: len(dst), n: value.Count(old)}
}

func (a *array) name(t bson.Type) {
	a.bytes = append(strconv.AppendInt(append(a.bytes, byte(t)), int64(a.n), 10), 0)
	a.n++
}

func (a *array) add(v bson.RawValue) {
	a.name(v.Type)
	a.bytes = append(a.bytes, v.Value...)
}

// change adds what n makes of v. An element that is removed becomes null, so that the others keep their places.
func (a *array) change(c *context, n *node, v bson.RawValue) (changed bool, err error) {
	at := len(a.bytes)
	a.name(bson.TypeNull)
	var t bson.Type
	if a.bytes, t, changed, err = c.change(a.bytes, n, v); t != 0 {
		a.bytes[at] = byte(t)
	} else {
		changed = changed && v.Type != bson.TypeNull
	}
	return changed, err
}

func (a *array) finish() []byte { return finish(a.bytes, a.start) }

func (a *array) value() bson.RawValue { return value.Array(a.finish()) }

// list is the elements of an array.
func list(v bson.RawValue) []bson.RawValue {
	var r []bson.RawValue
	for it := value.Elements(v.Value); it.Next(); {
		r = append(r, it.Value())
	}
	return r
}

func arrayOf(values []bson.RawValue) bson.RawValue {
	a := newArray(nil)
	for _, v := range values {
		a.add(v)
	}
	return a.value()
}
