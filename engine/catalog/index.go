package catalog

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/collation"
	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// IndexSpec is what a client says of an index.
type IndexSpec struct {
	Raw    bson.Raw // as listIndexes shows it: v, key and name, then the options
	Name   string
	Key    bson.Raw // the key pattern
	Unique bool
	Sparse bool
	Hidden bool
	// PrepareUnique: writes that make a key double are refused, though there may be such keys already.
	PrepareUnique bool
	// Pattern is what Key and the options say of the keys.
	Pattern key.Pattern
	// Partial is the partialFilterExpression, or nil.
	Partial bson.Raw
	// Expires says that it is a TTL index: a document is gone ExpireAfter seconds after the date in it.
	Expires     bool
	ExpireAfter int64

	// Collation orders the strings in it; nil is by bytes.
	Collation *collation.Collation

	wildcard bson.Raw // wildcardProjection
	collated bool     // the client said how to order strings
}

const (
	// IDIndexName is the name of the index on _id.
	IDIndexName = "_id_"

	indexesMax = 64
)

func idSpec(c *collation.Collation) IndexSpec {
	pattern := bsoncore.NewDocumentBuilder().AppendInt32("_id", 1).Build()
	raw := bsoncore.NewDocumentBuilder().AppendInt32("v", 2).AppendDocument("key", pattern).AppendString("name", IDIndexName).Build()
	s := IndexSpec{Raw: bson.Raw(raw), Name: IDIndexName, Key: bson.Raw(pattern), Pattern: key.Pattern{Fields: []key.Field{{Path: value.ParsePath("_id")}}}}
	s.setCollation(c)
	return s
}

// IsID says whether it is the index on _id, which is unique without saying so.
func (s *IndexSpec) IsID() bool { return s.Name == IDIndexName }

// ParseIndexSpec reads one element of createIndexes' indexes, or a Raw of before. It refuses what is not supported and
// what MongoDB refuses: CannotCreateIndex (67), InvalidIndexSpecificationOption (197), TypeMismatch (14) and so on.
func ParseIndexSpec(spec bson.Raw) (IndexSpec, error) {
	var s IndexSpec
	elems, err := spec.Elements()
	if err != nil {
		return s, mongoerr.InvalidBSON.Errorf("an index specification is not valid BSON: %w", err)
	}
	var hasName bool
	version := int64(2)
	var options []bson.RawElement
	for _, e := range elems {
		v := e.Value()
		option := true
		switch name := e.Key(); name {
		case "v":
			option = false
			if version, err = wholeNumber(name, v); err != nil {
				return s, err
			}
			if version != 1 && version != 2 {
				return s, mongoerr.CannotCreateIndex.Errorf("Invalid index specification %s; cannot create an index with v=%d", show(spec), version)
			}
		case "key":
			option = false
			var ok bool
			if s.Key, ok = v.DocumentOK(); !ok {
				return s, wrongType("key", v, "object")
			}
		case "name":
			option = false
			if s.Name, hasName = v.StringValueOK(); !hasName {
				return s, wrongType("name", v, "string")
			}
		case "ns":
			option = false
		case "background":
			// MongoDB accepts it and has not looked at it since version 4.2. It is not shown again.
			option = false
		case "unique":
			s.Unique, err = flag(name, v)
			option = s.Unique
		case "sparse":
			s.Sparse, err = flag(name, v)
			option = s.Sparse
		case "hidden":
			s.Hidden, err = flag(name, v)
			option = s.Hidden
		case "prepareUnique":
			s.PrepareUnique, err = flag(name, v)
			option = s.PrepareUnique
		case "wildcardProjection":
			var ok bool
			if s.wildcard, ok = v.DocumentOK(); !ok {
				return s, wrongType(name, v, "object")
			}
		case "expireAfterSeconds":
			s.Expires = true
			s.ExpireAfter, err = expireAfter(v)
		case "partialFilterExpression":
			partial, ok := v.DocumentOK()
			if !ok {
				return s, wrongType(name, v, "object")
			}
			s.Partial = partial
		case "collation":
			option = false
			s.Collation, err = collation.Read(name, v)
			s.collated = v.Type == bson.TypeEmbeddedDocument && value.Count(v.Value) > 0
		case "weights", "default_language", "language_override", "textIndexVersion", "2dsphereIndexVersion", "bits", "min", "max",
			"bucketSize", "columnstoreProjection", "storageEngine", "clustered", "dropDups":
			return s, mongoerr.NotImplemented.Errorf("the index option '%s' is not supported yet", name)
		default:
			return s, mongoerr.InvalidIndexSpecificationOption.Errorf("The field '%s' is not valid for an index specification. Specification: %s", name, show(spec))
		}
		if err != nil {
			return s, err
		}
		if option {
			options = append(options, e)
		}
	}
	switch {
	case s.Key == nil:
		return s, mongoerr.FailedToParse.Errorf("The 'key' field is a required property of an index specification")
	case !hasName:
		return s, mongoerr.FailedToParse.Errorf("The 'name' field is a required property of an index specification")
	case s.Name == "":
		return s, mongoerr.CannotCreateIndex.Errorf("Error in specification %s :: caused by :: index name cannot be empty", show(spec))
	case s.Name == "*":
		return s, mongoerr.BadValue.Errorf("The index name '*' is not valid.")
	case strings.IndexByte(s.Name, 0) >= 0:
		return s, mongoerr.CannotCreateIndex.Errorf("index names cannot contain NUL bytes")
	}
	if s.Pattern, err = key.ParsePattern(s.Key); err != nil {
		return s, err
	}
	s.Pattern.Sparse = s.Sparse
	if err := s.checkOptions(); err != nil {
		return s, err
	}
	b := bsoncore.NewDocumentBuilder().AppendInt32("v", int32(version)).AppendDocument("key", bsoncore.Document(s.Key)).AppendString("name", s.Name)
	for _, e := range options {
		v := e.Value()
		b.AppendValue(e.Key(), bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
	}
	s.Raw = bson.Raw(b.Build())
	s.setCollation(s.Collation)
	if s.isIDKey() {
		return s.asID()
	}
	if s.Name == IDIndexName {
		return s, mongoerr.BadValue.Errorf("The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}, found %s", show(s.Key))
	}
	return s, nil
}

// isIDKey says whether the key is {_id: 1} in some number type; {_id: -1} is an index like any other.
func (s *IndexSpec) isIDKey() bool {
	elems, err := s.Key.Elements()
	if err != nil || len(elems) != 1 || elems[0].Key() != "_id" {
		return false
	}
	d, ok := number(elems[0].Value())
	return ok && d > 0
}

// asID turns a specification on {_id: 1} into that of the index that every collection has. Whatever its name, it is that
// index; options that it cannot have are refused.
func (s *IndexSpec) asID() (IndexSpec, error) {
	switch {
	case s.Expires:
		return *s, mongoerr.InvalidIndexSpecificationOption.Errorf("The field 'expireAfterSeconds' is not valid for an _id index specification. Specification: %s", show(s.Raw))
	case s.Partial != nil, s.Sparse, s.Hidden:
		return *s, mongoerr.InvalidIndexSpecificationOption.Errorf("an _id index cannot be partial, sparse or hidden. Specification: %s", show(s.Raw))
	}
	id := idSpec(s.Collation)
	id.collated = s.collated
	return id, nil
}

// Inherit gives an index whose specification says nothing of a collation the collection's.
func (s *IndexSpec) Inherit(of *collation.Collation) error {
	switch {
	case s.IsID() && s.collated && !collation.Same(s.Collation, of):
		return mongoerr.BadValue.Errorf("The _id index must have the same collation as the collection. Index specification: %s", show(s.Raw))
	case !s.collated:
		s.setCollation(of)
	}
	return nil
}

// Explicit is the specification with the collation that the index has, even if it is none, so that nothing is inherited.
func (s *IndexSpec) Explicit() bson.Raw {
	return With(s.Raw, "collation", value.Document(s.Collation.Spec()))
}

func (s *IndexSpec) setCollation(c *collation.Collation) {
	s.Collation = c
	if c != nil {
		s.Pattern.Collation = c
		s.Raw = With(s.Raw, "collation", value.Document(c.Raw()))
	}
}

func (s *IndexSpec) checkOptions() error {
	if s.Sparse && s.Partial != nil {
		return mongoerr.CannotCreateIndex.Errorf("cannot mix \"partialFilterExpression\" and \"sparse\" options")
	}
	if s.Expires {
		if len(s.Pattern.Fields) != 1 {
			return mongoerr.CannotCreateIndex.Errorf("TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: %s", show(s.Key))
		}
	}
	switch p := &s.Pattern; {
	case p.Wild != nil:
		for _, o := range []struct {
			set  bool
			name string
		}{{s.Unique || s.PrepareUnique, "unique"}, {s.Sparse, "sparse"}, {s.Expires, "expireAfterSeconds"}} {
			if o.set {
				return mongoerr.CannotCreateIndex.Errorf("Index type 'wildcard' does not support the '%s' option", o.name)
			}
		}
		if s.wildcard != nil {
			return p.Wild.Project(s.wildcard)
		}
	case s.wildcard != nil:
		return mongoerr.BadValue.Errorf("The field 'wildcardProjection' is only allowed in an 'wildcard' index")
	case p.Hashed() && (s.Unique || s.PrepareUnique):
		return mongoerr.Code(16764).Errorf("Currently hashed indexes cannot guarantee uniqueness. Use a regular index.")
	case p.Hashed() && s.Expires:
		return mongoerr.CannotCreateIndex.Errorf("hashed indexes do not support TTL. Index spec: %s", show(s.Key))
	}
	return nil
}

// CheckIndexCount refuses one index more than MongoDB allows a collection.
func (d *Definition) CheckIndexCount(add int) error {
	if len(d.Indexes)+add > indexesMax {
		return mongoerr.CannotCreateIndex.Errorf("add index fails, too many indexes for %s: at most %d are allowed", d.NS, indexesMax)
	}
	return nil
}

// Relation says how an index that a client asks for stands to those that there are.
type Relation int

const (
	New       Relation = iota
	Identical          // it exists; nothing is to be done
)

// Relate compares s with the indexes of d: 85 IndexOptionsConflict and 86 IndexKeySpecsConflict as MongoDB gives them. Key,
// unique, sparse and partialFilterExpression are what an index is; its name and the other options are what it has.
func (d *Definition) Relate(s *IndexSpec) (Relation, error) {
	if i := d.Index(s.Name); i >= 0 {
		have := &d.Indexes[i].IndexSpec
		switch {
		case !s.sameIndex(have):
			return New, mongoerr.IndexKeySpecsConflict.Errorf("An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: %s, existing index: %s", show(s.Raw), show(have.Raw))
		case !s.sameOptions(have):
			return New, mongoerr.IndexOptionsConflict.Errorf("An equivalent index already exists with the same name but different options. Requested index: %s, existing index: %s", show(s.Raw), show(have.Raw))
		}
		return Identical, nil
	}
	for i := range d.Indexes {
		have := &d.Indexes[i].IndexSpec
		switch {
		case !s.sameIndex(have):
		case s.sameOptions(have):
			return New, mongoerr.IndexOptionsConflict.Errorf("Index already exists with a different name: %s", have.Name)
		default:
			return New, mongoerr.IndexOptionsConflict.Errorf("An equivalent index already exists with a different name and options. Requested index: %s, existing index: %s", show(s.Raw), show(have.Raw))
		}
	}
	return New, nil
}

func (s *IndexSpec) sameIndex(t *IndexSpec) bool {
	return SameKey(s.Key, t.Key) && s.Unique == t.Unique && s.Sparse == t.Sparse && bytes.Equal(s.Partial, t.Partial) && bytes.Equal(s.wildcard, t.wildcard) &&
		collation.Same(s.Collation, t.Collation)
}

func (s *IndexSpec) sameOptions(t *IndexSpec) bool {
	return s.Expires == t.Expires && s.ExpireAfter == t.ExpireAfter && s.Hidden == t.Hidden && s.PrepareUnique == t.PrepareUnique
}

// SameKey compares key patterns: the same paths in the same order, each with a number of the same value or the same kind of index.
func SameKey(a, b bson.Raw) bool {
	x, err1 := a.Elements()
	y, err2 := b.Elements()
	if err1 != nil || err2 != nil || len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i].Key() != y[i].Key() || !value.Equal(x[i].Value(), y[i].Value()) {
			return false
		}
	}
	return true
}

// number is a BSON number as a double, near enough to tell its sign.
func number(v bson.RawValue) (float64, bool) {
	switch v.Type {
	case bson.TypeInt32:
		return float64(v.Int32()), true
	case bson.TypeInt64:
		return float64(v.Int64()), true
	case bson.TypeDouble:
		return v.Double(), true
	case bson.TypeDecimal128:
		d, err := strconv.ParseFloat(v.Decimal128().String(), 64)
		return d, err == nil
	}
	return 0, false
}

func wholeNumber(name string, v bson.RawValue) (int64, error) {
	d, ok := number(v)
	if !ok {
		return 0, wrongType(name, v, "number")
	}
	if d != math.Trunc(d) || math.Abs(d) > 1<<53 {
		return 0, mongoerr.BadValue.Errorf("the field '%s' must be a whole number, but is %s", name, value.Brief(v, 100))
	}
	return int64(d), nil
}

// flag reads a boolean option; MongoDB takes numbers too.
func flag(name string, v bson.RawValue) (bool, error) {
	if b, ok := v.BooleanOK(); ok {
		return b, nil
	}
	if d, ok := number(v); ok {
		return d != 0, nil
	}
	return false, wrongType(name, v, "bool")
}

// expireAfter holds MongoDB's range: 0 to 2147483647 seconds. NaN and fractions are taken as it takes them, by truncation.
func expireAfter(v bson.RawValue) (int64, error) {
	d, ok := number(v)
	if !ok {
		return 0, mongoerr.CannotCreateIndex.Errorf("TTL index 'expireAfterSeconds' option must be numeric, but received a type of '%s'.", value.TypeName(v.Type))
	}
	if math.IsNaN(d) || d < 0 || d > math.MaxInt32 {
		return 0, mongoerr.CannotCreateIndex.Errorf("TTL index 'expireAfterSeconds' option must be within an acceptable range, but is %v", d)
	}
	return int64(d), nil
}

// show is a document as the shell writes it, for messages.
func show(doc bson.Raw) string { return value.Brief(value.Document(doc), 1000) }

func wrongType(name string, v bson.RawValue, want string) error {
	return mongoerr.TypeMismatch.Errorf("The field '%s' must be of type %s, but is of type %s", name, want, value.TypeName(v.Type))
}
