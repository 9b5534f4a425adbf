// Package model says what MongoDB's commands do to documents, in the simplest way that is right: a state is a list of
// collections, a collection a list of documents, and a command a sequence of steps over states. It knows nothing of the engine
// and shares no code with it, so that the two are wrong in the same way only if the same misreading of MongoDB is in both.
//
// # Units
//
// A command on many documents is not atomic: each document that it changes is a unit, so is the making of a collection or of
// an index. A power cut may leave any prefix of a command's units. [Op.next] takes one step of an [Op] from a state: there may be
// more than one way to go on (the order in which a statement meets its documents is the planner's).
//
// # Histories
//
// A [History] is told of every command when it is sent and when its reply comes. It holds all the states in which the
// database may be: those that some order of the commands explains in which each takes effect between its sending and its reply,
// step by step, and every reply is what the model gives. A reply that leaves none is a fault of the database. What a power cut
// may leave is any of these states, after any steps of the commands that have no reply yet: see [History.Cut].
//
// Commands that touch different documents are not put into any order: see [Op.meets], and what it demands of a workload.
package model

import (
	"fmt"
	"hash/crc64"
	"hash/fnv"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Kind is a kind of Value.
type Kind byte

// The kinds of values that documents of the model have.
const (
	Missing Kind = iota
	Int          // a 64-bit integer
	String
	Date // milliseconds since 1970
	Ints // an array of 64-bit integers
)

// Value is a field's.
type Value struct {
	Kind Kind
	N    int64
	S    string
	A    []int64

	brief string // of S
}

// textMax is the longest string that is shown as it is; others are their length and checksum.
const textMax = 40

// N is an integer.
func N(n int64) Value { return Value{Kind: Int, N: n} }

// S is a string.
func S(s string) Value { return Value{Kind: String, S: s, brief: short(s)} }

// D is a date.
func D(ms int64) Value { return Value{Kind: Date, N: ms} }

// A is an array.
func A(a ...int64) Value { return Value{Kind: Ints, A: a} }

var crcTable = crc64.MakeTable(crc64.ECMA)

func short(s string) string {
	if len(s) <= textMax {
		return s
	}
	return fmt.Sprintf("%d bytes, %016x", len(s), crc64.Checksum([]byte(s), crcTable))
}

func (v Value) String() string {
	switch v.Kind {
	case Int:
		return fmt.Sprint(v.N)
	case String:
		return fmt.Sprintf("%q", v.brief)
	case Date:
		return fmt.Sprintf("date(%d)", v.N)
	case Ints:
		return strings.ReplaceAll(fmt.Sprint(v.A), " ", ", ")
	}
	return "missing"
}

// Equal compares values of one kind; others differ.
func (v Value) Equal(o Value) bool {
	return v.Kind == o.Kind && v.N == o.N && v.S == o.S && slices.Equal(v.A, o.A)
}

// Field is one of a document's.
type Field struct {
	Name  string
	Value Value
}

// Doc is a document: fields in their order, _id first. It is immutable.
type Doc struct {
	ID     string
	Fields []Field // without _id
	Text   string
	hash   uint64
}

// NewDoc makes a document.
func NewDoc(id string, fields ...Field) *Doc {
	d := &Doc{ID: id, Fields: fields}
	var b strings.Builder
	fmt.Fprintf(&b, "{_id: %q", id)
	for _, f := range fields {
		fmt.Fprintf(&b, ", %s: %v", f.Name, f.Value)
	}
	b.WriteString("}")
	d.Text = b.String()
	d.hash = hashOf(d.Text)
	return d
}

// Get is the value of a field.
func (d *Doc) Get(name string) Value {
	if name == "_id" {
		return S(d.ID)
	}
	for _, f := range d.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return Value{}
}

// with gives the document another value in a field: a new field comes last, and Missing takes one away.
func (d *Doc) with(name string, v Value) *Doc {
	fields := slices.Clone(d.Fields)
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	switch {
	case v.Kind == Missing && i < 0:
		return d
	case v.Kind == Missing:
		fields = slices.Delete(fields, i, i+1)
	case i < 0:
		fields = append(fields, Field{name, v})
	default:
		fields[i].Value = v
	}
	return NewDoc(d.ID, fields...)
}

// Decode reads a document as a database gave it. One that the model cannot have had is an error.
func Decode(raw bson.Raw) (*Doc, error) {
	elements, err := raw.Elements()
	if err != nil {
		return nil, fmt.Errorf("model: a document that is none: %w", err)
	}
	var id string
	var fields []Field
	for i, e := range elements {
		v, err := decodeValue(e.Value())
		if err != nil {
			return nil, fmt.Errorf("model: field %s: %w", e.Key(), err)
		}
		if i == 0 {
			if e.Key() != "_id" || v.Kind != String {
				return nil, fmt.Errorf("model: a document that begins with %s", e.Key())
			}
			id = v.S
			continue
		}
		fields = append(fields, Field{e.Key(), v})
	}
	return NewDoc(id, fields...), nil
}

func decodeValue(v bson.RawValue) (Value, error) {
	switch v.Type {
	case bson.TypeInt64:
		return N(v.Int64()), nil
	case bson.TypeString:
		return S(v.StringValue()), nil
	case bson.TypeDateTime:
		return D(v.DateTime()), nil
	case bson.TypeArray:
		list, err := v.Array().Values()
		if err != nil {
			return Value{}, err
		}
		out := Value{Kind: Ints}
		for _, e := range list {
			n, ok := e.Int64OK()
			if !ok {
				return Value{}, fmt.Errorf("an array of %v", e.Type)
			}
			out.A = append(out.A, n)
		}
		return out, nil
	}
	return Value{}, fmt.Errorf("a value of type %v", v.Type)
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return mix(h.Sum64())
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
