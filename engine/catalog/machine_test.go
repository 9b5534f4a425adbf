package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/simfs"
)

// machine is a catalog beside a map of names. Statements change names and indexes; some are given up at their end.
type machine struct {
	disk *simfs.FS
	opt  storage.Options
	s    *storage.Store
	life uint64
	now  names
	held []heldNames
	// versions is what each value of the counter of changes stood for.
	versions map[uint64]string
	uuids    uint64
}

// names is the model: what each name leads to. A coll is never changed, but replaced.
type names map[Namespace]coll

type coll struct {
	uuid     UUID
	nextTree storage.TreeID
	indexes  []indexModel // without the one on _id
}

type indexModel struct {
	spec specModel
	tree storage.TreeID
}

// specModel is an index as a client asks for it: what it is, what it has, and how it is called.
type specModel struct{ is, has, name string }

func (s specModel) parse(rt *rapid.T) IndexSpec {
	fields := []string{s.is, fmt.Sprintf("name: %q", s.name)}
	if s.has != "" {
		fields = append(fields, s.has)
	}
	spec, err := ParseIndexSpec(value.MustParseDocument("{" + strings.Join(fields, ", ") + "}"))
	if err != nil {
		rt.Fatal(err)
	}
	return spec
}

type heldNames struct {
	sn  *storage.Snapshot
	was names
}

var errStop = errors.New("this statement is given up")

func TestCatalogAgainstMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{disk: simfs.New(simfs.Options{}), now: names{}, versions: map[uint64]string{},
			opt: storage.Options{Manual: true, SegmentSize: 64 << 10, MapReserve: 1 << 28}}
		defer m.disk.Discard()
		m.open(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"create":       m.create,
			"create again": m.create,
			"drop":         m.drop,
			"rename":       m.rename,
			"add index":    m.addIndex,
			"remove index": m.removeIndex,
			"hold": func(rt *rapid.T) {
				if len(m.held) < 3 {
					m.held = append(m.held, heldNames{m.s.Snapshot(), maps.Clone(m.now)})
				}
			},
			"let go": m.letGo,
			"clear": func(rt *rapid.T) {
				if _, err := m.s.ClearStep(); err != nil {
					rt.Fatal(err)
				}
			},
			"reopen": func(rt *rapid.T) {
				m.close(rt)
				m.open(rt)
			},
			"": m.seen,
		})
		m.close(rt)
	})
}

func (m *machine) open(rt *rapid.T) {
	m.life++
	var err error
	if m.s, err = storage.Open(m.disk.Env(m.life), "/db", m.opt); err != nil {
		rt.Fatal(err)
	}
}

func (m *machine) close(rt *rapid.T) {
	for len(m.held) > 0 {
		m.letGo(rt)
	}
	if err := m.s.Close(); err != nil {
		rt.Fatal(err)
	}
}

var someName = rapid.Custom(func(t *rapid.T) Namespace {
	return Namespace{
		DB:   rapid.SampledFrom([]string{"a", "A", "a-b", "b", "ab"}).Draw(t, "db"),
		Coll: rapid.SampledFrom([]string{"c", "C", "c.d", "-"}).Draw(t, "coll"),
	}
})

func (m *machine) known(rt *rapid.T) Namespace {
	if len(m.now) == 0 {
		rt.Skip("no collection")
	}
	return rapid.SampledFrom(m.now.sorted()).Draw(rt, "collection")
}

func (n names) sorted() []Namespace {
	return slices.SortedFunc(maps.Keys(n), func(a, b Namespace) int {
		return cmp.Or(strings.Compare(a.DB, b.DB), strings.Compare(a.Coll, b.Coll))
	})
}

// write runs f with collection 0, which it locks first if the change is one of names. If the statement is not given up, change is made
// in the model.
func (m *machine) write(rt *rapid.T, f func(w *storage.Writer) error, change func()) {
	stop := rapid.IntRange(0, 4).Draw(rt, "end") == 0
	c, err := m.s.Write(func(w *storage.Writer) error {
		if err := f(w); err != nil {
			return err
		}
		if stop {
			return errStop
		}
		return nil
	})
	if err := c.Wait(); err != nil {
		rt.Fatal(err)
	}
	switch {
	case err == nil:
		change()
	case !errors.Is(err, errStop):
		rt.Fatal(err)
	}
}

func (m *machine) create(rt *rapid.T) {
	ns := someName.Draw(rt, "name")
	want, exists := m.now[ns]
	differs := false
	for have := range m.now {
		differs = differs || have.DB != ns.DB && strings.EqualFold(have.DB, ns.DB)
	}
	m.uuids++
	d := NewDefinition(ns, UUID{byte(m.uuids), byte(m.uuids >> 8)}, Options{})
	created := false
	m.write(rt, func(w *storage.Writer) error {
		created = false
		zero := w.Lock(0)
		id, ok, err := Find(zero, ns)
		if err != nil || ok != exists {
			return fmt.Errorf("%s: found: %v, should be %v, %w", ns, ok, exists, err)
		}
		if ok {
			have, err := Decode(w.Lock(id).Desc())
			if err == nil && have.UUID != want.uuid {
				err = fmt.Errorf("%s leads to collection %s, should be %s", ns, have.UUID, want.uuid)
			}
			return err
		}
		if err := CheckCase(zero, ns.DB); mongoerr.Is(err, mongoerr.DatabaseDifferCase) != differs {
			return fmt.Errorf("%s: a database differs by case only: should be %v: %w", ns, differs, err)
		}
		if differs {
			return nil
		}
		created = true
		_, err = Create(w, zero, d)
		return err
	}, func() {
		if created {
			m.now[ns] = coll{uuid: d.UUID, nextTree: d.NextTree}
		}
	})
}

// collection gives a collection by its name, locked, and what its descriptor says.
func collection(w *storage.Writer, zero *storage.Collection, ns Namespace) (*storage.Collection, *Definition, error) {
	id, ok, err := Find(zero, ns)
	if err != nil || !ok {
		return nil, nil, fmt.Errorf("%s: found: %v, %w", ns, ok, err)
	}
	c := w.Lock(id)
	d, err := Decode(c.Desc())
	return c, d, err
}

func (m *machine) drop(rt *rapid.T) {
	ns := m.known(rt)
	m.write(rt, func(w *storage.Writer) error {
		zero := w.Lock(0)
		c, _, err := collection(w, zero, ns)
		if err != nil {
			return err
		}
		return Drop(zero, c, ns)
	}, func() { delete(m.now, ns) })
}

func (m *machine) rename(rt *rapid.T) {
	from, to := m.known(rt), someName.Draw(rt, "to")
	if _, ok := m.now[to]; ok {
		rt.Skip("the name is taken")
	}
	m.write(rt, func(w *storage.Writer) error {
		zero := w.Lock(0)
		c, d, err := collection(w, zero, from)
		if err != nil {
			return err
		}
		return Rename(zero, c, d, to)
	}, func() {
		m.now[to] = m.now[from]
		delete(m.now, from)
	})
}

// define changes the definition of a collection, of which nothing but the collection needs to be locked.
func (m *machine) define(rt *rapid.T, ns Namespace, f func(c *storage.Collection, d *Definition) error, change func(c *coll)) {
	sn := m.s.Snapshot()
	id, _, err := Find(sn.Collection(0), ns)
	sn.Release()
	if err != nil {
		rt.Fatal(err)
	}
	m.write(rt, func(w *storage.Writer) error {
		c := w.Lock(id)
		d, err := Decode(c.Desc())
		if err != nil {
			return err
		}
		d = d.Clone()
		if err := f(c, d); err != nil {
			return err
		}
		return c.SetDesc(d.Encode())
	}, func() {
		c := m.now[ns]
		c.indexes = slices.Clone(c.indexes)
		change(&c)
		m.now[ns] = c
	})
}

func (m *machine) addIndex(rt *rapid.T) {
	ns := m.known(rt)
	ask := specModel{
		is: rapid.SampledFrom([]string{"key: {a: 1}", "key: {a: -1}", "key: {a: 1, b: 1}", "key: {a: 1}, unique: true", "key: {a: 1}, sparse: true",
			"key: {a: 1}, partialFilterExpression: {b: {$gt: 1}}"}).Draw(rt, "is"),
		has:  rapid.SampledFrom([]string{"", "", "hidden: true"}).Draw(rt, "has"),
		name: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "name"),
	}
	relation, code := m.now[ns].relate(ask)
	var tree, next storage.TreeID
	m.define(rt, ns, func(c *storage.Collection, d *Definition) error {
		spec := ask.parse(rt)
		got, err := d.Relate(&spec)
		if code == 0 && (err != nil || got != relation) || code != 0 && !mongoerr.Is(err, code) {
			return fmt.Errorf("%v: relation %v, should be %v, code %d: %w", ask, got, relation, code, err)
		}
		tree, next = 0, d.NextTree
		if code != 0 || relation == Identical {
			return nil
		}
		tree = d.AddIndex(spec).Tree
		next = d.NextTree
		return c.CreateTree(tree)
	}, func(c *coll) {
		if tree != 0 {
			if tree < c.nextTree {
				rt.Fatalf("%v: a new index has tree %d, and numbers below %d were used before", ask, tree, c.nextTree)
			}
			c.nextTree = next
			c.indexes = append(c.indexes, indexModel{ask, tree})
		}
	})
}

// relate says how an index stands to those of c: a name stands for one index, and one index has one name.
func (c coll) relate(ask specModel) (Relation, mongoerr.Code) {
	for _, x := range c.indexes {
		if x.spec.name == ask.name {
			switch {
			case x.spec == ask:
				return Identical, 0
			case x.spec.is == ask.is:
				return New, mongoerr.IndexOptionsConflict
			}
			return New, mongoerr.IndexKeySpecsConflict
		}
	}
	for _, x := range c.indexes {
		if x.spec.is == ask.is {
			return New, mongoerr.IndexOptionsConflict
		}
	}
	return New, 0
}

func (m *machine) removeIndex(rt *rapid.T) {
	ns := m.known(rt)
	if len(m.now[ns].indexes) == 0 {
		rt.Skip("no index")
	}
	at := rapid.IntRange(0, len(m.now[ns].indexes)-1).Draw(rt, "index")
	x := m.now[ns].indexes[at]
	m.define(rt, ns, func(c *storage.Collection, d *Definition) error {
		d.RemoveIndex(x.spec.name)
		return c.DropTree(x.tree)
	}, func(c *coll) { c.indexes = slices.Delete(c.indexes, at, at+1) })
}

func (m *machine) letGo(rt *rapid.T) {
	if len(m.held) == 0 {
		rt.Skip("no snapshot")
	}
	h := m.held[0]
	m.held = m.held[1:]
	m.look(rt, h.sn, h.was)
	h.sn.Release()
}

func (m *machine) seen(rt *rapid.T) {
	sn := m.s.Snapshot()
	defer sn.Release()
	m.look(rt, sn, m.now)
}

// look demands that a snapshot shows want, in every way to look at it.
func (m *machine) look(rt *rapid.T, sn *storage.Snapshot, want names) {
	err := sn.Guard(func() error {
		zero := sn.Collection(0)
		shown := fmt.Sprint(want.sorted())
		if was, ok := m.versions[Version(zero)]; ok && was != shown {
			return fmt.Errorf("version %d stands for %s, and stood for %s", Version(zero), shown, was)
		}
		m.versions[Version(zero)] = shown
		var all []Entry
		for _, db := range []string{"", "A", "a", "a-b", "ab", "b", "none"} {
			list, err := List(zero, db)
			if err != nil {
				return err
			}
			var got, names []Namespace
			for _, e := range list {
				got = append(got, e.Namespace)
			}
			for _, ns := range want.sorted() {
				if db == "" || ns.DB == db {
					names = append(names, ns)
				}
			}
			if !slices.Equal(got, names) {
				return fmt.Errorf("database %q lists %v, should list %v", db, got, names)
			}
			if db == "" {
				all = list
			}
		}
		taken := map[storage.CollID]bool{0: true}
		for _, e := range all {
			if taken[e.ID] {
				return fmt.Errorf("%s is collection %d, and another name leads there", e.Namespace, e.ID)
			}
			taken[e.ID] = true
			if err := want[e.Namespace].is(sn.Collection(e.ID), e.Namespace); err != nil {
				return fmt.Errorf("%s, collection %d: %w", e.Namespace, e.ID, err)
			}
			if id, ok, err := Find(zero, e.Namespace); err != nil || !ok || id != e.ID {
				return fmt.Errorf("%s: lists as collection %d, found as %d, %v: %w", e.Namespace, e.ID, id, ok, err)
			}
		}
		for id := range storage.CollID(100) {
			if sn.Collection(id) != nil && !taken[id] {
				return fmt.Errorf("collection %d has no name", id)
			}
		}
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
}

// is says whether what is stored of a collection is want.
func (want coll) is(c *storage.Collection, ns Namespace) error {
	if c == nil {
		return errors.New("it is not there")
	}
	d, err := Decode(c.Desc())
	if err != nil {
		return err
	}
	if d.NS != ns || d.UUID != want.uuid || d.NextTree != want.nextTree || len(d.Indexes) != 1+len(want.indexes) || !d.Indexes[0].IsID() {
		return fmt.Errorf("its definition is %+v, should be %+v", d, want)
	}
	trees := []storage.TreeID{IDTree}
	for i, x := range want.indexes {
		if have := d.Indexes[i+1]; have.Name != x.spec.name || have.Tree != x.tree || d.Index(x.spec.name) != i+1 {
			return fmt.Errorf("index %d is %+v, should be %+v", i+1, have, x)
		}
		trees = append(trees, x.tree)
	}
	for t := range want.nextTree + 1 {
		if _, ok := c.Tree(t); ok != slices.Contains(trees, t) {
			return fmt.Errorf("it has tree %d: %v", t, ok)
		}
	}
	if again, err := Decode(d.Encode()); err != nil || !reflect.DeepEqual(again, d) {
		return fmt.Errorf("its definition %+v decodes as %+v, %v", d, again, err)
	}
	return nil
}
