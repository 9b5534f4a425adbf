package engine

import (
	"bytes"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/collation"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/value"
)

const (
	// outPrefix begins the names of collections that $out fills; Open drops what a crash has left of them.
	outPrefix = "tmp.agg_out."
	// $out hands its documents over at either of these.
	outDocs  = 1000
	outBytes = 4 << 20
	// mergeUnsynced is how many documents $merge writes until it waits for the log.
	mergeUnsynced = 1000
)

// sink is what $out and $merge write to.
type sink struct {
	db    *DB
	terms *terms
	world *world

	merging *writing // nil before the first document
	pending int      // documents since the last wait
}

// Out fills a collection of another name and then gives it the name in one unit, so that the old content is there until the new
// one is. It keeps the options and the indexes that the collection had.
func (s *sink) Out(to pipeline.Namespace, docs pipeline.Iterator) error {
	ns := Namespace{DB: to.DB, Coll: to.Collection}
	if err := ns.CheckCreate(); err != nil {
		return err
	}
	c, _, err := s.db.collection(s.world.sn, ns)
	if err != nil {
		return err
	}
	options := noFields()
	var indexes []bson.Raw
	if c != nil {
		if c.def.Options.IsView() {
			return onView(ns)
		}
		if c.def.Options.Capped {
			return mongoerr.Code(17152).Errorf("namespace '%s' is capped so it can't be used for $out", ns)
		}
		options = c.def.Options.Raw
		for i := range c.def.Indexes {
			if x := &c.def.Indexes[i]; !x.IsID() && !x.Building {
				indexes = append(indexes, x.Explicit())
			}
		}
	}
	temp := Namespace{DB: ns.DB, Coll: outPrefix + catalog.NewUUID(s.db.env.Rand).String()}
	ctx := s.world.ctx
	if err := s.db.CreateCollection(ctx, temp, options); err != nil {
		return err
	}
	err = s.fill(temp, docs)
	if err == nil && len(indexes) > 0 {
		_, err = s.db.CreateIndexes(ctx, temp, indexes)
	}
	if err == nil {
		err = s.db.RenameCollection(ctx, temp, ns, true)
	}
	if err != nil {
		// If this fails, too, the next Open drops it.
		s.db.DropCollection(ctx, temp)
	}
	return err
}

func (s *sink) fill(ns Namespace, docs pipeline.Iterator) error {
	var batch []bson.Raw
	size := 0
	flush := func() error {
		r, err := s.db.Insert(s.world.ctx, ns, batch, true)
		if err == nil && len(r.Errors) > 0 {
			err = r.Errors[0].Err
		}
		batch, size = batch[:0], 0
		return err
	}
	for {
		doc, err := docs.Next()
		if err != nil {
			return err
		}
		if doc == nil {
			break
		}
		batch, size = append(batch, clone(doc)), size+len(doc)
		if len(batch) == outDocs || size >= outBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return flush()
}

// CheckMerge looks for a unique index whose fields are on.
func (s *sink) CheckMerge(to pipeline.Namespace, on []string) error {
	specs, err := s.db.ListIndexes(s.terms.ctx, Namespace{DB: to.DB, Coll: to.Collection})
	switch {
	case mongoerr.Is(err, mongoerr.NamespaceNotFound) && len(on) == 1 && on[0] == "_id":
		return nil // it is going to have that index
	case err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound):
		return err
	}
	for _, raw := range specs {
		x, err := catalog.ParseIndexSpec(raw)
		if err != nil || !x.Unique && !x.IsID() || x.Partial != nil || !collation.Same(x.Collation, s.terms.coll) {
			continue
		}
		n := 0
		all := true
		for it := value.Elements(x.Key); it.Next(); n++ {
			all = all && slices.Contains(on, string(it.Name()))
		}
		if all && n == len(on) {
			return nil
		}
	}
	return mongoerr.Code(51183).Errorf("Cannot find index to verify that join fields will be unique")
}

// Merge looks at head, with the collection's lock.
func (s *sink) Merge(to pipeline.Namespace, on []string, doc bson.Raw, f func(old bson.Raw) (bson.Raw, error)) error {
	if s.merging == nil {
		s.merging = s.db.writing(s.world.ctx, Namespace{DB: to.DB, Coll: to.Collection}, true)
	}
	c := s.merging
	t, err := s.sameOn(on, doc)
	if err != nil {
		return err
	}
	merge := func(u *unit) error {
		if t != nil {
			ids, err := u.lookUp(t, false)
			if err != nil {
				return err
			}
			if len(ids) > 0 {
				_, _, err = u.changeSome(t, ids, false, func(u *unit, m matched) (bool, error) { return s.change(u, m, f) })
				return err
			}
		}
		fresh, err := f(nil)
		if err != nil || fresh == nil {
			return err
		}
		if fresh, err = s.db.prepare(fresh); err != nil {
			return err
		}
		return u.insert(fresh)
	}
	found, err := c.do(false, merge)
	if err == nil && !found {
		var fresh bson.Raw
		if fresh, err = f(nil); err == nil && fresh != nil {
			_, err = c.do(true, merge)
		}
	}
	if s.pending++; err == nil && s.pending%mergeUnsynced == 0 {
		err = c.commit.Wait()
	}
	return err
}

// sameOn looks for the document that has in the fields on what doc has; nil if doc has no _id yet, so that there can be none.
func (s *sink) sameOn(on []string, doc bson.Raw) (*target, error) {
	filter := noFields()
	for _, path := range on {
		v := value.Document(doc)
		for _, name := range strings.Split(path, ".") {
			if v.Type != bson.TypeEmbeddedDocument {
				v = value.Missing
				break
			}
			v = value.Lookup(v.Value, name)
		}
		if value.IsMissing(v) {
			return nil, nil
		}
		filter = appendField(filter, path, value.Document(appendField(noFields(), "$eq", v)))
	}
	return s.merging.target(s.terms, filter, nil, bson.RawValue{})
}

// change puts what f answers in the place of m.
func (s *sink) change(u *unit, m matched, f func(old bson.Raw) (bson.Raw, error)) (bool, error) {
	after, err := f(m.doc)
	if err != nil || after == nil || bytes.Equal(after, m.doc) {
		return false, err
	}
	if after, err = s.db.prepare(after); err != nil {
		return false, err
	}
	if !value.Equal(value.Lookup(after, "_id"), value.Lookup(m.doc, "_id")) {
		return false, mongoerr.ImmutableField.Errorf("$merge failed to update the matching document, did you attempt to modify the _id or the shard key?")
	}
	return true, u.replace(m.id, m.doc, after)
}

// end waits until all that was written is durable.
func (s *sink) end(err error) error {
	if s.merging == nil {
		return err
	}
	return s.merging.end(err)
}
