package match

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func (p *parser) comparison(path string, op Op, arg bson.RawValue) (Node, error) {
	switch {
	case arg.Type == bson.TypeUndefined:
		return nil, mongoerr.BadValue.Errorf("cannot compare to undefined (%s at '%s')", op.Name(), path)
	case arg.Type == bson.TypeRegex && op != Eq:
		return nil, mongoerr.BadValue.Errorf("can't have a regular expression as the operand of %s at '%s'", op.Name(), path)
	}
	return &Comparison{Path: path, Op: op, Value: arg, path: p.pathOf(path, false), value: newOperand(arg, p.opts.Collation)}, nil
}

// operand is the right side of a comparison, prepared.
type operand struct {
	v    bson.RawValue
	rank value.Rank
	coll Collation
	nan  bool
	text []byte // of a string
	key  []byte // the collation's of text
	i    int64  // of an int32 or int64
}

func newOperand(v bson.RawValue, coll Collation) operand {
	o := operand{v: v, rank: value.RankOf(v.Type), coll: coll, nan: isNaN(v)}
	switch v.Type {
	case bson.TypeString:
		o.text = value.StringBytes(v)
		if coll != nil {
			o.key = coll.AppendKey(nil, o.text)
		}
	case bson.TypeInt32, bson.TypeInt64:
		o.i, _ = intOf(v)
	}
	return o
}

// test compares v with the operand.
func (n *Comparison) test(v bson.RawValue) bool {
	o := &n.value
	if value.RankOf(v.Type) != o.rank || v.Type == 0 || v.Type == bson.TypeUndefined {
		return n.testOther(v)
	}
	var d int
	switch {
	case o.rank == value.RankNumber:
		if i, ok := intOf(v); ok && (o.v.Type == bson.TypeInt32 || o.v.Type == bson.TypeInt64) {
			d = boolInt(i > o.i) - boolInt(i < o.i)
			break
		}
		if nan := isNaN(v); nan || o.nan {
			return nan && o.nan && n.Op != Lt && n.Op != Gt
		}
		d = value.Compare(v, o.v)
	case o.text != nil && o.coll == nil && v.Type == bson.TypeString:
		text := v.Value[4 : len(v.Value)-1]
		if n.Op == Eq {
			return string(text) == string(o.text)
		}
		d = bytes.Compare(text, o.text)
	case o.key != nil && isText(v.Type):
		var room [128]byte
		d = bytes.Compare(o.coll.AppendKey(room[:0], value.StringBytes(v)), o.key)
	default:
		d = Compare(o.coll, v, o.v)
	}
	switch n.Op {
	case Lt:
		return d < 0
	case Lte:
		return d <= 0
	case Gt:
		return d > 0
	case Gte:
		return d >= 0
	}
	return d == 0
}

// testOther compares with a value of another bracket: only MinKey and MaxKey reach across brackets, and null is where missing is.
func (n *Comparison) testOther(v bson.RawValue) bool {
	switch n.value.rank {
	case value.RankNull:
		return v.Type == 0 && n.Op != Lt && n.Op != Gt
	case value.RankMaxKey:
		return n.Op == Lt || n.Op == Lte
	case value.RankMinKey:
		return n.Op == Gt || n.Op == Gte
	}
	return false
}
