package unified

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// matcher compares what a test expects with what there is. The zero matcher knows no entities.
type matcher struct {
	// entity and lsid give an entity's value, and a session's id.
	entity func(id string) (bson.RawValue, error)
	lsid   func(id string) (bson.RawValue, error)
}

var typeNames = map[string][]bson.Type{
	"double": {bson.TypeDouble}, "string": {bson.TypeString}, "object": {bson.TypeEmbeddedDocument}, "array": {bson.TypeArray},
	"binData": {bson.TypeBinary}, "undefined": {bson.TypeUndefined}, "objectId": {bson.TypeObjectID}, "bool": {bson.TypeBoolean},
	"date": {bson.TypeDateTime}, "null": {bson.TypeNull}, "regex": {bson.TypeRegex}, "dbPointer": {bson.TypeDBPointer},
	"javascript": {bson.TypeJavaScript}, "symbol": {bson.TypeSymbol}, "javascriptWithScope": {bson.TypeCodeWithScope},
	"int": {bson.TypeInt32}, "timestamp": {bson.TypeTimestamp}, "long": {bson.TypeInt64}, "decimal": {bson.TypeDecimal128},
	"minKey": {bson.TypeMinKey}, "maxKey": {bson.TypeMaxKey},
	"number": {bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128},
}

// match says how got differs from want, or nil. A got without a type is an absent value. A root document may have more fields than are
// wanted; and so may the documents of a root array.
func (m *matcher) match(path string, want, got bson.RawValue, root bool) error {
	if op, arg, ok := operator(want); ok {
		return m.special(path, op, arg, got, root)
	}
	if got.Type == 0 {
		return fmt.Errorf("%s: missing, want %s", path, show(want))
	}
	switch want.Type {
	case bson.TypeEmbeddedDocument:
		return m.document(path, want, got, root)
	case bson.TypeArray:
		return m.array(path, want, got, root)
	}
	if same, numbers := equalNumbers(want, got); numbers {
		if !same {
			return fmt.Errorf("%s: %s, want %s", path, show(got), show(want))
		}
		return nil
	}
	if want.Type != got.Type || !bytes.Equal(want.Value, got.Value) {
		return fmt.Errorf("%s: %s, want %s", path, show(got), show(want))
	}
	return nil
}

func (m *matcher) document(path string, want, got bson.RawValue, root bool) error {
	if got.Type != bson.TypeEmbeddedDocument {
		return fmt.Errorf("%s: %s, want a document %s", path, show(got), show(want))
	}
	wants, err := want.Document().Elements()
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, w := range wants {
		known[w.Key()] = true
		g, _ := got.Document().LookupErr(w.Key())
		if err := m.match(path+"."+w.Key(), w.Value(), g, false); err != nil {
			return err
		}
	}
	if root {
		return nil
	}
	gots, err := got.Document().Elements()
	if err != nil {
		return err
	}
	for _, g := range gots {
		if !known[g.Key()] {
			return fmt.Errorf("%s.%s: not wanted: %s", path, g.Key(), show(g.Value()))
		}
	}
	return nil
}

func (m *matcher) array(path string, want, got bson.RawValue, root bool) error {
	if got.Type != bson.TypeArray {
		return fmt.Errorf("%s: %s, want an array %s", path, show(got), show(want))
	}
	wants, err := want.Array().Values()
	if err != nil {
		return err
	}
	gots, err := got.Array().Values()
	if err != nil {
		return err
	}
	if len(wants) != len(gots) {
		return fmt.Errorf("%s: %d elements %s, want %d: %s", path, len(gots), show(got), len(wants), show(want))
	}
	for i := range wants {
		if err := m.match(fmt.Sprintf("%s.%d", path, i), wants[i], gots[i], root); err != nil {
			return err
		}
	}
	return nil
}

// operator takes {$$name: argument} apart.
func operator(v bson.RawValue) (name string, arg bson.RawValue, ok bool) {
	if v.Type != bson.TypeEmbeddedDocument {
		return "", arg, false
	}
	elements, err := v.Document().Elements()
	if err != nil || len(elements) != 1 || !strings.HasPrefix(elements[0].Key(), "$$") {
		return "", arg, false
	}
	return elements[0].Key(), elements[0].Value(), true
}

func (m *matcher) special(path, op string, arg, got bson.RawValue, root bool) error {
	switch op {
	case "$$exists":
		if want := arg.Boolean(); want != (got.Type != 0) {
			return fmt.Errorf("%s: %s, want $$exists: %t", path, show(got), want)
		}
		return nil
	case "$$unsetOrMatches":
		if got.Type == 0 {
			return nil
		}
		return m.match(path, arg, got, root)
	}
	if got.Type == 0 {
		return fmt.Errorf("%s: missing, want %s: %s", path, op, show(arg))
	}
	switch op {
	case "$$type":
		return matchType(path, arg, got)
	case "$$matchesEntity", "$$sessionLsid":
		find := m.entity
		if op == "$$sessionLsid" {
			find = m.lsid
		}
		want, err := find(arg.StringValue())
		if err != nil {
			return err
		}
		return m.match(path, want, got, root)
	case "$$matchesHexBytes":
		want, err := hex.DecodeString(arg.StringValue())
		if err != nil {
			return err
		}
		if _, data, ok := got.BinaryOK(); !ok || !bytes.Equal(want, data) {
			return fmt.Errorf("%s: %s, want the bytes %x", path, show(got), want)
		}
		return nil
	case "$$matchAsRoot":
		return m.match(path, arg, got, true)
	case "$$matchAsDocument":
		text, ok := got.StringValueOK()
		if !ok {
			return fmt.Errorf("%s: %s, want a string that holds a document", path, show(got))
		}
		var doc bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return m.match(path, arg, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, root)
	case "$$lte":
		want, ok1 := arg.AsFloat64OK()
		have, ok2 := got.AsFloat64OK()
		if !ok1 || !ok2 || have > want {
			return fmt.Errorf("%s: %s, want <= %s", path, show(got), show(arg))
		}
		return nil
	}
	return fmt.Errorf("%s: the runner does not know %s", path, op)
}

func matchType(path string, arg, got bson.RawValue) error {
	names := []bson.RawValue{arg}
	if arg.Type == bson.TypeArray {
		var err error
		if names, err = arg.Array().Values(); err != nil {
			return err
		}
	}
	for _, n := range names {
		types := typeNames[n.StringValue()]
		if types == nil {
			return fmt.Errorf("%s: the runner does not know the type %s", path, show(n))
		}
		if slices.Contains(types, got.Type) {
			return nil
		}
	}
	return fmt.Errorf("%s: %s is %s, want %s", path, show(got), got.Type, show(arg))
}

// equalNumbers compares two numbers by value; numbers says whether they are such. Decimal128 is no such number.
func equalNumbers(a, b bson.RawValue) (same, numbers bool) {
	if !isNumber(a) || !isNumber(b) {
		return false, false
	}
	if a.Type != bson.TypeDouble && b.Type != bson.TypeDouble {
		return a.AsInt64() == b.AsInt64(), true
	}
	return a.AsFloat64() == b.AsFloat64(), true
}

func isNumber(v bson.RawValue) bool {
	return v.Type == bson.TypeInt32 || v.Type == bson.TypeInt64 || v.Type == bson.TypeDouble
}

// show is a value for a message, not too long.
func show(v bson.RawValue) string {
	if v.Type == 0 {
		return "nothing"
	}
	s := v.String()
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	return s
}
