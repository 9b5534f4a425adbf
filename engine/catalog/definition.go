package catalog

import (
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// UUID is a collection's identity.
type UUID [16]byte

// NewUUID makes a random one (version 4).
func NewUUID(r env.Rand) UUID {
	var u UUID
	for i := 0; i < 2; i++ {
		x := r.Uint64()
		for j := range 8 {
			u[8*i+j] = byte(x >> (8 * j))
		}
	}
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// Definition is all that is known of a collection. It is immutable once it is shared: change a Clone.
type Definition struct {
	NS       Namespace
	UUID     UUID
	Options  Options
	NextTree storage.TreeID
	Indexes  []Index // the one on _id first
}

// Index is one index of a collection.
type Index struct {
	IndexSpec
	Tree storage.TreeID
	// Building is set from the first unit of a build to its last. Nobody reads such an index. Side is the tree in which writers note
	// for the build what they do meanwhile.
	Building bool
	Side     storage.TreeID
	// Multikey has bit i set if some document had an array at or above the path of key field i.
	Multikey uint64
	// Arrays are, of a wildcard index, the paths at which a document had an array, sorted; ArraysUnknown in Multikey says that they
	// were too many to list.
	Arrays []string
}

// ArraysUnknown says that any path of a wildcard index may lead through arrays.
const ArraysUnknown = 1 << 1

// arraysMax is how many paths Index.Arrays lists at most.
const arraysMax = 100

// Knows says whether Learn would learn nothing.
func (x *Index) Knows(multikey uint64, arrays []string) bool {
	if multikey&^x.Multikey != 0 {
		return false
	}
	for _, path := range arrays {
		if _, found := slices.BinarySearch(x.Arrays, path); !found && x.Multikey&ArraysUnknown == 0 {
			return false
		}
	}
	return true
}

// Learn adds what a document's keys say of arrays.
func (x *Index) Learn(multikey uint64, arrays []string) {
	x.Multikey |= multikey
	list := x.Arrays
	for _, path := range arrays {
		at, found := slices.BinarySearch(list, path)
		if found || x.Multikey&ArraysUnknown != 0 {
			continue
		}
		if len(list) == arraysMax {
			x.Multikey |= ArraysUnknown
			list = nil
			continue
		}
		list = slices.Insert(slices.Clip(list), at, path)
	}
	x.Arrays = list
}

// IDTree is the tree of the index on _id.
const IDTree storage.TreeID = 1

// NewDefinition describes an empty collection, which has the index on _id.
func NewDefinition(ns Namespace, id UUID, options Options) *Definition {
	if options.Raw == nil {
		options.Raw = bson.Raw(bsoncore.NewDocumentBuilder().Build())
	}
	return &Definition{NS: ns, UUID: id, Options: options, NextTree: IDTree + 1, Indexes: []Index{{IndexSpec: idSpec(options.Collation), Tree: IDTree}}}
}

// Clone makes a copy to change.
func (d *Definition) Clone() *Definition {
	c := *d
	c.Indexes = append([]Index(nil), d.Indexes...)
	return &c
}

// Index gives the position of the index called name, or -1.
func (d *Definition) Index(name string) int {
	for i := range d.Indexes {
		if d.Indexes[i].Name == name {
			return i
		}
	}
	return -1
}

// Ready is the number of indexes that are not being built.
func (d *Definition) Ready() int {
	n := 0
	for i := range d.Indexes {
		if !d.Indexes[i].Building {
			n++
		}
	}
	return n
}

// AddIndex adds an index that is being built, with trees of its own.
func (d *Definition) AddIndex(spec IndexSpec) *Index {
	d.Indexes = append(d.Indexes, Index{IndexSpec: spec, Tree: d.NextTree, Building: true, Side: d.NextTree + 1})
	d.NextTree += 2
	return &d.Indexes[len(d.Indexes)-1]
}

// RemoveIndex removes the index called name.
func (d *Definition) RemoveIndex(name string) {
	for i := range d.Indexes {
		if d.Indexes[i].Name == name {
			d.Indexes = append(d.Indexes[:i], d.Indexes[i+1:]...)
			return
		}
	}
}

// Encode gives the descriptor; the package comment has its form.
func (d *Definition) Encode() []byte {
	start, b := bsoncore.AppendDocumentStart(nil)
	b = bsoncore.AppendStringElement(b, "ns", d.NS.String())
	b = bsoncore.AppendStringElement(b, "db", d.NS.DB)
	b = bsoncore.AppendBinaryElement(b, "uuid", bson.TypeBinaryUUID, d.UUID[:])
	b = bsoncore.AppendDocumentElement(b, "options", bsoncore.Document(d.Options.Raw))
	b = bsoncore.AppendInt64Element(b, "nextTree", int64(d.NextTree))
	list, b := bsoncore.AppendArrayElementStart(b, "indexes")
	for i := range d.Indexes {
		x := &d.Indexes[i]
		var doc int32
		doc, b = bsoncore.AppendDocumentElementStart(b, fmt.Sprint(i))
		b = bsoncore.AppendDocumentElement(b, "spec", bsoncore.Document(x.Raw))
		b = bsoncore.AppendInt64Element(b, "tree", int64(x.Tree))
		b = bsoncore.AppendBooleanElement(b, "building", x.Building)
		b = bsoncore.AppendInt64Element(b, "multikey", int64(x.Multikey))
		if x.Building {
			b = bsoncore.AppendInt64Element(b, "side", int64(x.Side))
		}
		if len(x.Arrays) > 0 {
			var array int32
			array, b = bsoncore.AppendArrayElementStart(b, "arrays")
			for i, path := range x.Arrays {
				b = bsoncore.AppendStringElement(b, fmt.Sprint(i), path)
			}
			b, _ = bsoncore.AppendArrayEnd(b, array)
		}
		b, _ = bsoncore.AppendDocumentEnd(b, doc)
	}
	b, _ = bsoncore.AppendArrayEnd(b, list)
	b, _ = bsoncore.AppendDocumentEnd(b, start)
	return b
}

// Decode reads a descriptor. The Definition keeps parts of it, so desc must not change. Descriptors are under the storage
// column's checksums; one that does not decode is damage all the same, and an error.
func Decode(desc []byte) (*Definition, error) {
	raw := bson.Raw(desc)
	if err := raw.Validate(); err != nil {
		return nil, fmt.Errorf("catalog: descriptor of %d bytes: %v: %w", len(desc), err, storage.ErrCorrupt)
	}
	d := &Definition{}
	ns, _ := raw.Lookup("ns").StringValueOK()
	db, _ := raw.Lookup("db").StringValueOK()
	bad := func(what string) (*Definition, error) {
		return nil, fmt.Errorf("catalog: descriptor of %q: bad %s: %w", ns, what, storage.ErrCorrupt)
	}
	if len(ns) < len(db)+2 || ns[:len(db)] != db {
		return bad("name")
	}
	d.NS = Namespace{DB: db, Coll: ns[len(db)+1:]}
	_, id, ok := raw.Lookup("uuid").BinaryOK()
	if !ok || len(id) != len(d.UUID) {
		return bad("uuid")
	}
	d.UUID = UUID(id)
	options, ok := raw.Lookup("options").DocumentOK()
	if !ok {
		return bad("options")
	}
	var err error
	if d.Options, err = ParseOptions(options); err != nil {
		return bad("options")
	}
	next, ok := raw.Lookup("nextTree").Int64OK()
	if !ok {
		return bad("nextTree")
	}
	d.NextTree = storage.TreeID(next)
	list, ok := raw.Lookup("indexes").ArrayOK()
	if !ok {
		return bad("indexes")
	}
	var values []bson.RawValue
	if values, err = list.Values(); err != nil || len(values) == 0 {
		return bad("indexes")
	}
	for _, v := range values {
		doc, ok := v.DocumentOK()
		if !ok {
			return bad("index")
		}
		spec, ok1 := doc.Lookup("spec").DocumentOK()
		tree, ok2 := doc.Lookup("tree").Int64OK()
		building, ok3 := doc.Lookup("building").BooleanOK()
		multikey, ok4 := doc.Lookup("multikey").Int64OK()
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return bad("index")
		}
		x := Index{Tree: storage.TreeID(tree), Building: building, Multikey: uint64(multikey)}
		if side, ok := doc.Lookup("side").Int64OK(); ok == building {
			x.Side = storage.TreeID(side)
		} else {
			return bad("index")
		}
		if x.IndexSpec, err = ParseIndexSpec(spec); err != nil {
			return bad("index specification")
		}
		for it := value.Elements(doc.Lookup("arrays").Value); it.Next(); {
			path, ok := it.Value().StringValueOK()
			if !ok {
				return bad("index")
			}
			x.Arrays = append(x.Arrays, path)
		}
		d.Indexes = append(d.Indexes, x)
	}
	return d, nil
}
