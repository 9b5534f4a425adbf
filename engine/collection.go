package engine

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/storage/btree"
)

// collection is a definition made ready for use. It is immutable, but for what its plans have learned.
type collection struct {
	id      storage.CollID
	desc    []byte
	def     *catalog.Definition
	indexes []index        // as in def
	plan    []*query.Index // those that can be read
	valid   *match.Filter  // nil: every document is
	choices choices
}

// index is what keys are made with.
type index struct {
	*catalog.Index
	partial *match.Filter // nil: every document
	unique  bool
}

func newCollection(e *env.Env, id storage.CollID, desc []byte) (*collection, error) {
	def, err := catalog.Decode(desc)
	if err != nil {
		return nil, err
	}
	c := &collection{id: id, desc: desc, def: def}
	c.choices.init(e)
	if def.Options.Validator != nil && !def.Options.Unchecked {
		if c.valid, err = match.Parse(def.Options.Validator, shared(e, def.Options.Collation)); err != nil {
			return nil, fmt.Errorf("catalog: validator of %s: %v: %w", def.NS, err, storage.ErrCorrupt)
		}
	}
	for i := range def.Indexes {
		x, err := newIndex(&def.Indexes[i])
		if err != nil {
			return nil, fmt.Errorf("catalog: index %s of %s: %v: %w", def.Indexes[i].Name, def.NS, err, storage.ErrCorrupt)
		}
		c.indexes = append(c.indexes, x)
		if !x.Building {
			c.plan = append(c.plan, x.planned())
		}
	}
	return c, nil
}

func newIndex(x *catalog.Index) (index, error) {
	out := index{Index: x, unique: x.Unique || x.IsID()}
	var err error
	if x.Partial != nil {
		out.partial, err = match.Parse(x.Partial, matching(x.Collation, nil))
	}
	return out, err
}

// planned is the index as the planner sees it.
func (x *index) planned() *query.Index {
	q := &query.Index{Tree: uint32(x.Tree), Name: x.Name, Key: x.Key, Unique: x.unique, Sparse: x.Sparse, Hidden: x.Hidden, Multikey: x.Multikey, Partial: x.partial,
		Collation: x.Collation}
	if w := x.Pattern.Wild; w != nil {
		q.Wild = &query.Wild{Wild: w, Kind: x.Pattern.Fields[0].Kind, Arrays: x.Arrays, Unknown: x.Multikey&catalog.ArraysUnknown != 0}
	}
	for _, f := range x.Pattern.Fields {
		q.Fields = append(q.Fields, query.Field{Path: f.Path.String(), Kind: f.Kind})
	}
	return q
}

// is says whether sc, found under c's id, is still c.
func (c *collection) is(def *catalog.Definition) bool { return c.def.UUID == def.UUID }

// cache keeps names and definitions that were read, since a command looks them up each time. Names are those of one version of the
// catalog; a definition goes with the slice that it was read from.
type cache struct {
	mu      env.Mutex
	version uint64
	names   map[catalog.Namespace]storage.CollID
	defs    map[storage.CollID]*collection
}

// cacheMax bounds what is kept, in collections.
const cacheMax = 10_000

func (k *cache) init(e *env.Env) {
	k.mu.Init(e, env.RankLeaf, "engine cache")
	k.names, k.defs = map[catalog.Namespace]storage.CollID{}, map[storage.CollID]*collection{}
}

func (k *cache) name(version uint64, ns catalog.Namespace) (storage.CollID, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if version != k.version {
		return 0, false
	}
	id, ok := k.names[ns]
	return id, ok
}

func (k *cache) addName(version uint64, ns catalog.Namespace, id storage.CollID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if version < k.version {
		return
	}
	if version > k.version || len(k.names) >= cacheMax {
		clear(k.names)
		k.version = version
	}
	k.names[ns] = id
}

func (k *cache) definition(id storage.CollID, desc []byte) (*collection, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.defs[id]
	return c, ok && len(desc) > 0 && len(desc) == len(c.desc) && &desc[0] == &c.desc[0]
}

func (k *cache) addDefinition(c *collection) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.defs) >= cacheMax {
		clear(k.defs)
	}
	k.defs[c.id] = c
}

// open gives the definition of sc, from the cache if it is there.
func (db *DB) open(sc *storage.Collection) (*collection, error) {
	if c, ok := db.cache.definition(sc.ID(), sc.Desc()); ok {
		return c, nil
	}
	c, err := newCollection(db.env, sc.ID(), sc.Desc())
	if err != nil {
		return nil, err
	}
	db.cache.addDefinition(c)
	return c, nil
}

// collection finds ns in a snapshot; both are nil if there is no such collection.
func (db *DB) collection(sn *storage.Snapshot, ns catalog.Namespace) (*collection, *storage.Collection, error) {
	zero := sn.Collection(0)
	version := catalog.Version(zero)
	id, ok := db.cache.name(version, ns)
	if !ok {
		var err error
		if id, ok, err = catalog.Find(zero, ns); err != nil || !ok {
			return nil, nil, err
		}
		db.cache.addName(version, ns, id)
	}
	sc := sn.Collection(id)
	if sc == nil {
		return nil, nil, fmt.Errorf("catalog: %s is collection %d, which is not there: %w", ns, id, storage.ErrCorrupt)
	}
	c, err := db.open(sc)
	return c, sc, err
}

// keySet are the keys of one document in one index, each without the record id.
type keySet struct {
	set   key.Set
	keys  []entry // what is left to do of set's keys
	unfit bool    // the index does not allow the document
}

// entry is an index entry without its record id. The trailer, which is the entry's value, says what the key forgets.
type entry struct{ key, trailer []byte }

const (
	// keyMax is the size of the largest key, so that with its record id it fits a tree.
	keyMax = btree.KeySizeMax - 8

	codeKeyTooLarge mongoerr.Code = 17280
)

// make fills s with doc's keys in x; none if doc is not in x.
func (s *keySet) make(x *index, doc bson.Raw) error {
	s.keys, s.unfit = s.keys[:0], false
	s.set.Multikey, s.set.Arrays = 0, s.set.Arrays[:0]
	if x.partial != nil {
		in, err := x.partial.Match(doc)
		if err != nil || !in {
			return err
		}
	}
	if err := x.Pattern.Keys(&s.set, doc); err != nil {
		return err
	}
	for i := range s.set.Len() {
		if n := len(s.set.Key(i)); n > keyMax {
			return codeKeyTooLarge.Errorf("Index key too large: %s of %d bytes, and at most %d are allowed", x.Name, n, keyMax)
		}
		s.keys = append(s.keys, entry{s.set.Key(i), s.set.Trailer(i)})
	}
	return nil
}
