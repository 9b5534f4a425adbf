package match

import (
	"encoding/binary"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

func (p *parser) bits(op BitsOp, path string, arg bson.RawValue) (Node, error) {
	n := &Bits{Path: path, Op: op, path: p.pathOf(path, false)}
	switch {
	case arg.Type == bson.TypeArray:
		for it := value.Elements(arg.Value); it.Next(); {
			i, ok := wholeOf(it.Value())
			if !ok || i < 0 || i > math.MaxInt32 {
				return nil, mongoerr.BadValue.Errorf("%s at '%s': a bit position must be an integer from 0 to 2147483647, not %s",
					op.Name(), path, show(it.Value()))
			}
			n.Positions = append(n.Positions, uint32(i))
		}
		slices.Sort(n.Positions)
		n.Positions = slices.Compact(n.Positions)
	case value.IsNumber(arg.Type):
		i, ok := wholeOf(arg)
		if !ok || i < 0 {
			return nil, mongoerr.FailedToParse.Errorf("%s at '%s' takes a non-negative integer as bitmask, not %s", op.Name(), path,
				show(arg))
		}
		n.Positions = bitsOf(binary.LittleEndian.AppendUint64(nil, uint64(i)))
	case arg.Type == bson.TypeBinary:
		n.Positions = bitsOf(arg.Value[5:])
	default:
		return nil, mongoerr.BadValue.Errorf("%s at '%s' takes an array, a number or binary data, not %s", op.Name(), path,
			value.TypeName(arg.Type))
	}
	return n, nil
}

// bitsOf are the positions of the set bits; bit 0 is the lowest of the first byte.
func bitsOf(b []byte) (positions []uint32) {
	for i, c := range b {
		for k := range 8 {
			if c>>k&1 != 0 {
				positions = append(positions, uint32(i*8+k))
			}
		}
	}
	return positions
}

func (n *Bits) test(v bson.RawValue) bool {
	var number int64
	var data []byte
	if v.Type == bson.TypeBinary {
		data = v.Value[5:]
	} else if i, ok := wholeOf(v); ok {
		number = i
	} else {
		return false
	}
	want := n.Op == AllSet || n.Op == AnySet
	all := n.Op == AllSet || n.Op == AllClear
	for _, pos := range n.Positions {
		var bit bool
		switch {
		case v.Type != bson.TypeBinary:
			bit = number>>min(pos, 63)&1 != 0 // beyond the sign bit there are only its copies
		case int(pos/8) < len(data):
			bit = data[pos/8]>>(pos%8)&1 != 0
		}
		if (bit == want) != all {
			return !all
		}
	}
	return all
}
