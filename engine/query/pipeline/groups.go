package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// groups are values that are equal only to themselves, numbered in the order in which they came: a hash table under package value's
// equality, or the collation's.
type groups struct {
	first map[uint64]int32 // by hash: 1 + the last number with that hash
	next  []int32          // by number: 1 + the number before it with the same hash
	keys  []bson.RawValue
	opts  *Options
	seed  uint64
	buf   []byte
}

func newGroups(o *Options) *groups {
	g := &groups{first: map[uint64]int32{}, opts: o}
	if o.Context.Rand != nil {
		g.seed = o.Context.Rand()
	}
	return g
}

// fresh is an empty table with the same hash.
func (g *groups) fresh() *groups {
	return &groups{first: map[uint64]int32{}, opts: g.opts, seed: g.seed}
}

// find is the number of v, and whether it is new. The bytes of a new one are copied.
func (g *groups) find(v bson.RawValue) (int, bool) { return g.findHashed(g.hash(v), v) }

// findHashed is find for those who have the hash.
func (g *groups) findHashed(h uint64, v bson.RawValue) (int, bool) {
	for n := g.first[h]; n > 0; n = g.next[n-1] {
		if g.equal(g.keys[n-1], v) {
			return int(n - 1), false
		}
	}
	g.keys = append(g.keys, clone(v))
	g.next = append(g.next, g.first[h])
	g.first[h] = int32(len(g.keys))
	return len(g.keys) - 1, true
}

// lookup is the number of v, if it is there.
func (g *groups) lookup(v bson.RawValue) (int, bool) {
	for n := g.first[g.hash(v)]; n > 0; n = g.next[n-1] {
		if g.equal(g.keys[n-1], v) {
			return int(n - 1), true
		}
	}
	return 0, false
}

func (g *groups) equal(a, b bson.RawValue) bool {
	if g.opts.Context.Order != nil {
		return g.opts.Context.Order(a, b) == 0
	}
	return value.Equal(a, b)
}

// hash agrees with equal: under a collation, text is digested as its key, and documents and arrays all alike.
func (g *groups) hash(v bson.RawValue) uint64 {
	if g.opts.Collation == nil {
		return value.Hash(g.seed, v)
	}
	switch v.Type {
	case bson.TypeString:
		g.buf = g.opts.Collation.AppendKey(g.buf[:0], value.StringBytes(v))
		return value.Hash(g.seed, value.String(string(g.buf)))
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return uint64(v.Type)
	}
	return value.Hash(g.seed, v)
}

// compare orders values as the pipeline does.
func (o *Options) compare(a, b bson.RawValue) int { return compare(o.Context, a, b) }

func compare(c *expr.Context, a, b bson.RawValue) int {
	if c.Order != nil {
		return c.Order(a, b)
	}
	return value.Compare(a, b)
}
