// Package update changes documents as MongoDB's updates do: by operators ({$set: {a: 1}}), by replacement, or by a pipeline that
// somebody else compiles.
//
// Parse turns an update into a tree once; Apply runs it over any number of documents. The tree has a node per name of a path and
// an operator's modifier in each leaf:
//
//	{$set: {"a.b": 1}, $inc: {"a.c": 2, d: 1}}       a ─┬─ b: $set 1
//	                                                     └─ c: $inc 2
//	                                                 d: $inc 1
//
// So two operators that would touch the same place, or one inside of the other's, meet in the tree and are refused there.
//
// Apply goes over the document and the tree together and writes the new document from front to back: fields without a node are
// copied as they stand, those with one are changed in their place, and what the tree has and the document lacks comes
// after the document's own fields. The children of a node are sorted: numbers by value, then names by their bytes; therefore new
// fields appear in that order, as in MongoDB since 5.0, whatever the order of the update.
//
// A modifier is a function from the old value to the new one, where Missing stands for no value on either side. Nothing is
// created for a modifier that makes Missing of Missing ($unset, $pull ... ), nor is anything wrong then if the path cannot
// be created. A document that comes out byte for byte as it went in has not changed.
//
// Always: the document that Apply was given is never written to, _id comes out as it went in, and a result is at most
// value.SizeMax bytes and value.DepthMax levels.
package update

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Test is a compiled filter: does it match the document?
type Test func(doc bson.Raw) (bool, error)

// Transform is a compiled pipeline: what becomes of the document.
type Transform func(doc bson.Raw) (bson.Raw, error)

// Options are what an update means beside what it says.
type Options struct {
	// ArrayFilters are the conditions of $[identifier].
	ArrayFilters []bson.Raw
	// Filter compiles a filter, for $pull and for array filters.
	Filter func(filter bson.Raw) (Test, error)
	// Pipeline compiles a pipeline. Without it a pipeline is refused.
	Pipeline func(stages bson.Raw) (Transform, error)
	// Compare orders values for $min, $max, $addToSet, $pull, $pullAll and $push's $sort; nil is value.Compare. A collation's differs.
	Compare Order
}

// Order orders values; nil is value.Compare.
type Order func(a, b bson.RawValue) int

func (o Order) compare(a, b bson.RawValue) int {
	if o == nil {
		return value.Compare(a, b)
	}
	return o(a, b)
}

// Context is what an application of an update depends on beside the document.
type Context struct {
	// Positional is the array position that the filter matched at, which $ stands for; -1 if there is none.
	Positional int
	// Now is the time in milliseconds since 1970, for $currentDate.
	Now int64
	// Ordinal tells timestamps within one second apart.
	Ordinal uint32
	// Insert says that the document is being made by an upsert. Make sets it.
	Insert bool
}

// Update is a parsed update. It is immutable and may be used by any number of goroutines at once.
type Update struct {
	root        *node    // operators
	replacement bson.Raw // the whole new document
	transform   Transform

	positional bool // there is a $ in a path
	deepens    bool // a $rename may move a value deeper than it was
	order      Order
}

// Parse parses an update: a document whose first name begins with $ has operators, any other is a replacement, an array is a pipeline.
func Parse(u bson.RawValue, opts Options) (*Update, error) {
	r := &Update{order: opts.Compare}
	switch u.Type {
	case bson.TypeArray:
		if len(opts.ArrayFilters) > 0 {
			return nil, mongoerr.FailedToParse.Errorf("arrayFilters may not be specified for pipeline-style updates")
		}
		if opts.Pipeline == nil {
			return nil, mongoerr.NotImplemented.Errorf("updates by pipeline are not implemented")
		}
		var err error
		r.transform, err = opts.Pipeline(u.Value)
		return r, err
	case bson.TypeEmbeddedDocument:
	default:
		return nil, mongoerr.FailedToParse.Errorf("Update argument must be either an object or an array")
	}
	if err := value.Validate(u.Value); err != nil {
		return nil, err
	}
	if it := value.Elements(u.Value); !it.Next() || !isDollar(it.Name()) {
		if len(opts.ArrayFilters) > 0 {
			return nil, mongoerr.FailedToParse.Errorf("arrayFilters may not be specified for replacement-style updates")
		}
		for it := value.Elements(u.Value); it.Next(); {
			if isDollar(it.Name()) {
				return nil, mongoerr.DollarPrefixedFieldName.Errorf("The dollar ($) prefixed field '%s' in '%s' is not allowed in the context of an update's "+
					"replacement document. Consider using an aggregation pipeline with $replaceWith.", it.Name(), it.Name())
			}
		}
		r.replacement = u.Value
		return r, nil
	}
	p := &parser{opts: opts, operators: operators, update: r}
	if err := p.parse(u.Value); err != nil {
		return nil, err
	}
	return r, nil
}

func isDollar(name []byte) bool { return len(name) > 0 && name[0] == '$' }

// IsReplacement says whether the update replaces whole documents, which a statement on many documents must not.
func (u *Update) IsReplacement() bool { return u.replacement != nil }

// NeedsPositional says whether the update has a $ in a path, so that the position of the filter's match matters.
func (u *Update) NeedsPositional() bool { return u.positional }

// Apply is what the update makes of doc, and whether that differs. If it does not, the result is doc itself, else a new document.
func (u *Update) Apply(doc bson.Raw, ctx Context) (bson.Raw, bool, error) {
	var result bson.Raw
	var err error
	switch {
	case u.replacement != nil:
		result, err = u.replace(doc, ctx)
	case u.transform != nil:
		result, err = u.transform(doc)
	default:
		return u.operate(doc, ctx)
	}
	if err != nil {
		return nil, false, err
	}
	if result, err = keepID(doc, result); err != nil {
		return nil, false, err
	}
	if bytes.Equal(result, doc) {
		return doc, false, nil
	}
	if err := u.check(result, ctx); err != nil {
		return nil, false, err
	}
	if u.transform != nil {
		if err := value.Validate(result); err != nil {
			return nil, false, err
		}
	}
	return result, true, nil
}

func (u *Update) operate(doc bson.Raw, ctx Context) (bson.Raw, bool, error) {
	c := context{Context: ctx, update: u, root: doc}
	root := u.root
	if u.positional {
		var err error
		if root, err = root.resolve(ctx.Positional); err != nil {
			return nil, false, err
		}
	}
	result, changed, err := c.document(make([]byte, 0, len(doc)+64), root, doc)
	if err != nil || !changed {
		return doc, false, err
	}
	old, id := value.Lookup(doc, "_id"), value.Lookup(result, "_id")
	switch {
	case old.Type == 0 || value.Identical(old, id):
	case !value.Equal(old, id):
		return nil, false, mongoerr.ImmutableField.Errorf("Performing an update on the path '_id' would modify the immutable field '_id'")
	default:
		if result, err = keepID(doc, result); err != nil {
			return nil, false, err
		}
		if bytes.Equal(result, doc) {
			return doc, false, nil
		}
	}
	if err := u.check(result, ctx); err != nil {
		return nil, false, err
	}
	if u.deepens {
		if err := value.Validate(result); err != nil {
			return nil, false, err
		}
	}
	return result, true, nil
}

// check holds a result to the largest size.
func (u *Update) check(result bson.Raw, ctx Context) error {
	switch {
	case len(result) <= value.SizeMax:
		return nil
	case ctx.Insert:
		return mongoerr.LocationUpsertTooLarge.Errorf("Document to upsert is larger than %d", value.SizeMax)
	}
	return mongoerr.LocationTransformedTooLarge.Errorf("Resulting document after update is larger than %d", value.SizeMax)
}

// replace is the replacement with doc's _id; zero timestamps at its top become the present, as in an inserted document.
func (u *Update) replace(doc bson.Raw, ctx Context) (bson.Raw, error) {
	result := bytes.Clone(u.replacement)
	for it := value.Elements(result); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeTimestamp && binary.LittleEndian.Uint64(v.Value) == 0 && string(it.Name()) != "_id" {
			copy(v.Value, ctx.timestamp().Value)
		}
	}
	return result, nil
}

func (c Context) timestamp() bson.RawValue { return value.Timestamp(uint32(c.Now/1000), c.Ordinal) }

// keepID is result with doc's _id in front. It is an error if result has another; one that is equal but of another type gives way.
func keepID(doc, result bson.Raw) (bson.Raw, error) {
	id := value.Lookup(doc, "_id")
	own := value.Lookup(result, "_id")
	if id.Type != 0 && own.Type != 0 && !value.Equal(id, own) {
		return nil, mongoerr.ImmutableField.Errorf("After applying the update, the (immutable) field '_id' was found to have been altered to %s", value.Brief(own, 200))
	}
	if id.Type == 0 {
		id = own
	}
	if id.Type == 0 {
		return result, nil
	}
	dst := make([]byte, 4, len(result)+len(id.Value)+len("_id")+2)
	dst = appendElement(dst, "_id", id)
	first := true
	for it := value.Elements(result); it.Next(); {
		if first && string(it.Name()) == "_id" {
			first = false
			continue
		}
		dst = appendElement(dst, it.Name(), it.Value())
	}
	return finish(dst, 0), nil
}

func appendElement[N string | []byte](dst []byte, name N, v bson.RawValue) []byte {
	return append(append(append(append(dst, byte(v.Type)), name...), 0), v.Value...)
}

// finish ends the document or array that begins at start.
func finish(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}
