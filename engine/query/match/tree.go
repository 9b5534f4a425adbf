package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Node is one test in a filter's tree. The set of nodes is closed: a reader of the tree switches over the types of this file.
//
// # What a test of a path means
//
// The nodes with a Path field test the values that the path reaches in a document. MongoDB walks arrays on the way: at every
// array that is met before the end of the path, the rest of the path goes on in each element that is a document, and, if the
// next part is a number, in the element at that index. At the end of the path a leaf test (Comparison, In, Type, Mod, Regex,
// Bits, Exists) is tried on each element of an array and then on the array itself; Size and the two ElemMatch are tried on the array only. The
// node matches if one of the values passes. A path that ends nowhere reaches one value, "missing", per place where it got
// lost in a document (a: 1 and a.b is lost, too); an array without documents reaches nothing at all.
//
// So, for whoever derives index bounds: two tests of one path may be satisfied by two different elements (their bounds must
// not be intersected on a multikey path unless both are under one ElemMatch), and Not, Nor say nothing about elements.
//
// # Normal form
//
// Parse flattens an And in an And and an Or in an Or, replaces an And or Or of one by that one, and writes $ne as Not of
// Comparison, $nin as Not of In, {$exists: false} as Not of Exists, $all as And, {$all: []}, {$in: []} and {$or: []} in a
// schema as Always{false}, {} as Always{true}. The order of clauses is the filter's.
type Node interface {
	// appendTo writes the node in the filter language, as explain shows it: the inside of a document.
	appendTo(dst []byte) []byte
}

// And matches if all Nodes do. There are at least two.
type And struct{ Nodes []Node }

// Or matches if one of Nodes does. There are at least two.
type Or struct{ Nodes []Node }

// Nor matches if none of Nodes does. There is at least one.
type Nor struct{ Nodes []Node }

// Not matches if Node does not: {path: {$not: ...}}, $ne, $nin, {$exists: false}.
type Not struct{ Node Node }

// Always matches every document, or none.
type Always struct{ Value bool }

// Collation is how the test compares strings; nil is by bytes.
func (n *Comparison) Collation() Collation { return n.value.coll }
func (n *In) Collation() Collation         { return n.set.coll }

// Collated says whether the filter has a collation. The pattern does not go by it, but what an index has of a string may.
func (n *Regex) Collated() bool { return n.collated }

// Op is a comparison.
type Op uint8

const (
	Eq Op = iota
	Lt
	Lte
	Gt
	Gte
)

// Name is the operator's name in the filter language.
func (o Op) Name() string { return [...]string{"$eq", "$lt", "$lte", "$gt", "$gte"}[o] }

// Comparison compares with Value inside the bracket of its type (all numbers are one bracket, strings and symbols another), except
// that MinKey and MaxKey compare with everything. Null equals, and with Lte and Gte is, null and missing. NaN equals only NaN.
// Value is never undefined, and a regular expression only under Eq (then it is that value, not a pattern).
type Comparison struct {
	Path  string
	Op    Op
	Value bson.RawValue

	path  *path
	value operand
}

// In matches if the value equals one of Values, or matches one of Regexes. Values are in canonical order without duplicates;
// a null among them matches missing too.
type In struct {
	Path    string
	Values  []bson.RawValue
	Regexes []*Regex

	path *path
	set  set
}

// Exists matches if the path reaches a value.
type Exists struct {
	Path string

	path *path
}

// Type matches a value of one of Types.
type Type struct {
	Path  string
	Types Types

	path *path
}

// Mod matches a number that, cut to an integer, leaves Remainder when divided by Divisor, which is not 0.
type Mod struct {
	Path               string
	Divisor, Remainder int64

	path *path
}

// Regex matches a string or symbol in which Pattern is found, and a regular expression equal to this one. Options are sorted.
type Regex struct {
	Path             string
	Pattern, Options string

	path     *path
	re       *pattern
	collated bool
}

// Size matches an array of N elements.
type Size struct {
	Path string
	N    int64

	path *path
}

// BitsOp is one of the four bit tests.
type BitsOp uint8

const (
	AllSet BitsOp = iota
	AllClear
	AnySet
	AnyClear
)

// Name is the operator's name in the filter language.
func (o BitsOp) Name() string {
	return [...]string{"$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear"}[o]
}

// Bits tests bits of a number that is a whole number in the range of int64, or of binary data. Positions are sorted.
type Bits struct {
	Path      string
	Op        BitsOp
	Positions []uint32

	path *path
}

// ElemMatchObject matches an array with an element, itself a document or an array, that passes Node. The paths in Node
// begin at the element.
type ElemMatchObject struct {
	Path string
	Node Node

	path *path
}

// ElemMatchValue matches an array with an element that by itself passes all Nodes. The Path of each node inside is empty
// and means the element; arrays in the array are not entered.
type ElemMatchValue struct {
	Path  string
	Nodes []Node

	path *path
}

// Expr matches if the aggregation expression Value is true of the document.
type Expr struct {
	Value bson.RawValue

	eval Predicate
}

// Schema matches a document that fulfils the JSON schema.
type Schema struct {
	Value  bson.Raw
	schema *schema
}

// Types is a set of BSON types.
type Types struct{ bits [4]uint64 }

// Has says whether t is in the set.
func (s Types) Has(t bson.Type) bool { return s.bits[t>>6]>>(t&63)&1 != 0 }

// With returns the set with t.
func (s Types) With(t bson.Type) Types {
	s.bits[t>>6] |= 1 << (t & 63)
	return s
}

// Each calls f with each type of the set, in the order of their numbers.
func (s Types) Each(f func(bson.Type)) {
	for t := range 256 {
		if s.Has(bson.Type(t)) {
			f(bson.Type(t))
		}
	}
}
