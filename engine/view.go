package engine

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/catalog"
	"github.com/multiforadb/multiforadb/engine/collation"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/pipeline"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

// A view is a collection in the catalog that stays empty: its options name what it is made of. Whoever reads it reads that, with the
// view's stages in front of his own, and compares text as the view does. Whoever writes to it is refused.
//
// The collection system.views of a database, which MongoDB keeps its views in, is itself made up: a document per view.

const (
	viewsName = "system.views"
	// viewDepthMax is how many views may lie on each other; MongoDB's limit.
	viewDepthMax = 20
	// viewsUsedMax is how often a pipeline may name views. Views that name others twice would double with each level.
	viewsUsedMax = 1000
)

// origin is what a name stands for.
type origin struct {
	base   Namespace            // the collection at the bottom; without a name if the stages make the documents themselves
	view   bool                 // the name is a view's
	stages []bson.Raw           // of the view
	coll   *collation.Collation // the view's
}

// origin follows views down to a collection.
func (db *DB) origin(sn *storage.Snapshot, ns Namespace) (origin, error) {
	o := origin{base: ns}
	if ns.Coll == viewsName {
		stage, err := db.listViews(sn, ns.DB)
		return origin{base: Namespace{DB: ns.DB}, view: true, stages: []bson.Raw{stage}}, err
	}
	for depth := 0; ; depth++ {
		c, _, err := db.collection(sn, o.base)
		if err != nil || c == nil || !c.def.Options.IsView() {
			return o, err
		}
		v := &c.def.Options
		if depth == viewDepthMax {
			return o, mongoerr.ViewDepthLimitExceeded.Errorf("View depth too deep, or a cycle of views: more than %d views lie on each other below %s", viewDepthMax, ns)
		}
		if !o.view {
			o.view, o.coll = true, v.Collation
		}
		o.stages = append(append([]bson.Raw{}, v.Pipeline...), o.stages...)
		o.base.Coll = v.ViewOn
	}
}

// listViews is the stage that makes the documents of system.views.
func (db *DB) listViews(sn *storage.Snapshot, database string) (bson.Raw, error) {
	docs := bson.A{}
	list, err := catalog.List(sn.Collection(0), database)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		c, _, err := db.collection(sn, e.Namespace)
		if err != nil {
			return nil, err
		}
		if o := &c.def.Options; o.IsView() {
			d := bson.D{{Key: "_id", Value: e.Namespace.String()}, {Key: "viewOn", Value: o.ViewOn}, {Key: "pipeline", Value: o.Pipeline}}
			if o.Collation != nil {
				d = append(d, bson.E{Key: "collation", Value: o.Collation.Raw()})
			}
			docs = append(docs, bson.D{{Key: "$literal", Value: d}})
		}
	}
	return bson.Marshal(bson.D{{Key: "$documents", Value: docs}})
}

// originOf is origin in a snapshot of its own.
func (db *DB) originOf(ns Namespace) (o origin, err error) {
	err = db.read(func(sn *storage.Snapshot) error {
		o, err = db.origin(sn, ns)
		return err
	})
	return o, err
}

func onView(ns Namespace) error {
	return mongoerr.CommandNotSupportedOnView.Errorf("Namespace %s is a view, not a collection", ns)
}

// OnView says whether err is that of a command on a view that is only for collections.
func OnView(err error) bool { return mongoerr.Is(err, mongoerr.CommandNotSupportedOnView) }

// noView is an error if ns is a view.
func (db *DB) noView(ns Namespace) error {
	o, err := db.originOf(ns)
	if err == nil && o.view {
		err = onView(ns)
	}
	return err
}

// lie puts a pipeline on what ns stands for.
func (a *Aggregate) lie(ns Namespace, o origin) (Namespace, error) {
	if !o.view {
		return ns, nil
	}
	if value.Count(a.Collation) > 0 {
		c, err := collation.Parse(a.Collation)
		if err == nil && !collation.Same(c, o.coll) {
			err = mongoerr.OptionNotSupportedOnView.Errorf("Cannot override a view's default collation: %s", ns)
		}
		if err != nil {
			return ns, err
		}
	}
	a.Collation = o.coll.Spec()
	a.Stages = append(o.stages, a.Stages...)
	return o.base, nil
}

// FindOnView is Find for a view.
func (db *DB) FindOnView(ctx context.Context, ns Namespace, f Find) (*Aggregation, error) {
	a, err := f.aggregate()
	if err != nil {
		return nil, err
	}
	return db.Aggregate(ctx, ns, a)
}

// aggregate is the query as a pipeline.
func (f *Find) aggregate() (Aggregate, error) {
	a := Aggregate{Hint: f.Hint, Collation: f.Collation, Let: f.Let, MemoryOnly: f.MemoryOnly}
	unsupported := func(what string) (Aggregate, error) {
		return a, mongoerr.InvalidPipelineOperator.Errorf("Option %s not supported on views.", what)
	}
	switch {
	case f.Tailable:
		return unsupported("tailable")
	case f.ShowRecordID:
		return unsupported("showRecordId")
	case f.ReturnKey:
		return unsupported("returnKey")
	case f.Min != nil || f.Max != nil:
		return unsupported("min or max")
	}
	add := func(stage string, v bson.RawValue) {
		a.Stages = append(a.Stages, appendField(noFields(), stage, v))
	}
	if value.Count(f.Filter) > 0 {
		add("$match", value.Document(f.Filter))
	}
	if value.Count(f.Sort) > 0 {
		if value.Lookup(f.Sort, "$natural").Type != 0 {
			return unsupported("$natural sort")
		}
		add("$sort", value.Document(f.Sort))
	}
	if f.Skip > 0 {
		add("$skip", value.Int64(f.Skip))
	}
	if f.Limit > 0 {
		add("$limit", value.Int64(f.Limit))
	}
	if value.Count(f.Projection) > 0 {
		for it := value.Elements(f.Projection); it.Next(); {
			name := string(it.Name())
			if len(name) > 2 && name[len(name)-2:] == ".$" || value.Lookup(it.Value().Value, "$elemMatch").Type != 0 && it.Value().Type == bson.TypeEmbeddedDocument {
				return unsupported("positional and $elemMatch projection")
			}
		}
		add("$project", value.Document(f.Projection))
	}
	return a, nil
}

// countOnView is Count for a view.
func (db *DB) countOnView(ctx context.Context, ns Namespace, c Count) (n int64, err error) {
	f := Find{Filter: c.Filter, Hint: c.Hint, Collation: c.Collation, Skip: c.Skip, Limit: c.Limit}
	a, err := f.aggregate()
	if err != nil {
		return 0, err
	}
	a.Stages = append(a.Stages, appendField(noFields(), "$count", value.String("n")))
	err = db.eachOf(ctx, ns, a, func(doc bson.Raw) error {
		n = int64(value.AsDouble(value.Lookup(doc, "n")))
		return nil
	})
	return n, err
}

// distinctOnView reads for Distinct.
func (db *DB) distinctOnView(ctx context.Context, ns Namespace, d Distinct, values *valueSet, each func(doc bson.Raw) error) error {
	o, err := db.originOf(ns)
	if err != nil {
		return err
	}
	if o.coll != nil {
		values.coll = o.coll
	}
	f := Find{Filter: d.Filter, Hint: d.Hint, Collation: d.Collation}
	a, err := f.aggregate()
	if err != nil {
		return err
	}
	return db.eachOf(ctx, ns, a, each)
}

// eachOf calls f with each document that a pipeline gives.
func (db *DB) eachOf(ctx context.Context, ns Namespace, a Aggregate, f func(doc bson.Raw) error) error {
	r, err := db.Aggregate(ctx, ns, a)
	if err != nil {
		return err
	}
	defer r.Close()
	for more := true; more && err == nil; {
		var bad error
		more, err = r.Batch(ctx, unitDocs, func(doc bson.Raw) bool {
			if bad == nil {
				bad = f(doc)
			}
			return true
		})
		if bad != nil {
			return bad
		}
	}
	return err
}

// checkView says whether a view may be called ns and have these options.
func (db *DB) checkView(ctx context.Context, ns Namespace, o *catalog.Options) error {
	if !o.IsView() {
		return nil
	}
	on := Namespace{DB: ns.DB, Coll: o.ViewOn}
	if err := on.Check(); err != nil {
		return err
	}
	err := db.read(func(sn *storage.Snapshot) error {
		g := viewGraph{db: db, sn: sn, of: ns, seen: map[string]bool{}}
		return g.visit(on.Coll, o, 1)
	})
	if err != nil {
		return err
	}
	r, err := db.aggregation(ctx, on, Aggregate{Stages: o.Pipeline, Collation: o.Collation.Spec()})
	if err != nil {
		return err
	}
	defer r.Close()
	if _, writes := r.pipe.Writes(); writes {
		return mongoerr.OptionNotSupportedOnView.Errorf("The aggregation stages $out and $merge cannot be used in a view definition")
	}
	return nil
}

// viewGraph looks for ways from what a view is made of back to the view.
type viewGraph struct {
	db   *DB
	sn   *storage.Snapshot
	of   Namespace
	seen map[string]bool
}

// visit goes on from name and from what the pipeline of o names.
func (g *viewGraph) visit(name string, o *catalog.Options, depth int) error {
	if depth > viewDepthMax {
		return mongoerr.ViewDepthLimitExceeded.Errorf("View depth limit exceeded; maximum depth is %d", viewDepthMax)
	}
	for _, name := range append(named(nil, o.Pipeline), name) {
		if name == g.of.Coll {
			return mongoerr.GraphContainsCycle.Errorf("View cycle detected: %s leads back to itself", g.of)
		}
		if g.seen[name] {
			continue
		}
		g.seen[name] = true
		c, _, err := g.db.collection(g.sn, Namespace{DB: g.of.DB, Coll: name})
		if err != nil {
			return err
		}
		if c != nil && c.def.Options.IsView() {
			if err := g.visit(c.def.Options.ViewOn, &c.def.Options, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// named appends the collections of the same database that stages read, at any depth.
func named(names []string, stages []bson.Raw) []string {
	for _, s := range stages {
		for it := value.Elements(s); it.Next(); {
			names = namedBy(names, string(it.Name()), it.Value())
		}
	}
	return names
}

func namedBy(names []string, stage string, arg bson.RawValue) []string {
	inner := func(v bson.RawValue) {
		if stages, err := pipeline.Split(v); err == nil {
			names = named(names, stages)
		}
	}
	name := func(v bson.RawValue) {
		if v.Type == bson.TypeString {
			names = append(names, string(value.StringBytes(v)))
		}
	}
	if arg.Type != bson.TypeEmbeddedDocument {
		if stage == "$unionWith" {
			name(arg)
		}
		return names
	}
	switch stage {
	case "$lookup", "$graphLookup":
		name(value.Lookup(arg.Value, "from"))
		inner(value.Lookup(arg.Value, "pipeline"))
	case "$unionWith":
		name(value.Lookup(arg.Value, "coll"))
		inner(value.Lookup(arg.Value, "pipeline"))
	case "$facet":
		for it := value.Elements(arg.Value); it.Next(); {
			inner(it.Value())
		}
	}
	return names
}

// View is what a view is made of, for stages that read other collections.
func (w *world) View(ns pipeline.Namespace) (pipeline.Namespace, []bson.Raw, error) {
	to := Namespace{DB: ns.DB, Coll: ns.Collection}
	if err := to.Check(); err != nil {
		return ns, nil, err
	}
	o, err := w.db.originOf(to)
	if err != nil || !o.view {
		return ns, nil, err
	}
	if w.views++; w.views > viewsUsedMax {
		return ns, nil, mongoerr.ViewDepthLimitExceeded.Errorf("a pipeline names views, directly and by way of others, more than %d times", viewsUsedMax)
	}
	if !collation.Same(o.coll, w.terms.coll) && to.Coll != viewsName {
		return ns, nil, mongoerr.OptionNotSupportedOnView.Errorf("The view %s has another collation than the operation", to)
	}
	return pipeline.Namespace{DB: o.base.DB, Collection: o.base.Coll}, o.stages, nil
}

// viewsInfo is how listCollections shows system.views. Its identity follows from the database's name.
func viewsInfo(database string) CollectionInfo {
	info := CollectionInfo{Name: viewsName, Options: noFields(), IDIndex: catalog.NewDefinition(Namespace{DB: database, Coll: viewsName}, catalog.UUID{}, catalog.Options{}).Indexes[0].Raw}
	h := value.Hash(0, value.String(database))
	info.UUID = [16]byte{6: 0x40, 8: 0x80}
	copy(info.UUID[9:], bsoncore.AppendInt64(nil, int64(h)))
	return info
}
