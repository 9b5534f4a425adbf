package expr

import (
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// What Total, Spread and Percentiles have come to can be saved as bytes and loaded into a zero one, which then goes on as if it had
// been there all the time: for groups that leave the memory. The bytes are little endian and for this process only.

// Save appends the state of t:
//
//	0       8      16   24        32  40       41
//	┌───────┬──────┬────┬─────────┬───┬────────┬────────────────────┐
//	│ whole │ high │ lo │ special │ N │ widest │ decimal if there is│
//	└───────┴──────┴────┴─────────┴───┴────────┴────────────────────┘
func (t *Total) Save(dst []byte) []byte {
	for _, u := range [...]uint64{uint64(t.whole), math.Float64bits(t.high), math.Float64bits(t.lo), math.Float64bits(t.special), uint64(t.N)} {
		dst = binary.LittleEndian.AppendUint64(dst, u)
	}
	dst = append(dst, t.widest)
	if t.decimal != nil {
		dst = append(dst, value.OfDecimal(t.decimal).Value...)
	}
	return dst
}

// Load takes what Save wrote.
func (t *Total) Load(b []byte) {
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	f := func(i int) float64 { return math.Float64frombits(u(i)) }
	t.whole, t.high, t.lo, t.special, t.N, t.widest = int64(u(0)), f(1), f(2), f(3), int64(u(4)), b[40]
	if len(b) > 41 {
		t.decimal = value.AsDecimal(bson.RawValue{Type: bson.TypeDecimal128, Value: b[41:]})
	}
}

// Save appends the state of s: n, mean, m.
func (s *Spread) Save(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.n))
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(s.mean))
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(s.m))
}

// Load takes what Save wrote.
func (s *Spread) Load(b []byte) {
	s.n = int64(binary.LittleEndian.Uint64(b))
	s.mean = math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
	s.m = math.Float64frombits(binary.LittleEndian.Uint64(b[16:]))
}

// Save appends the state of p: its numbers.
func (p *Percentiles) Save(dst []byte) []byte {
	for _, f := range p.list {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
	}
	return dst
}

// Load takes what Save wrote.
func (p *Percentiles) Load(b []byte) {
	p.list = make([]float64, len(b)/8)
	for i := range p.list {
		p.list[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
}
