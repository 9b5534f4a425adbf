package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
)

// Namespace names a collection.
type Namespace struct{ DB, Collection string }

func (n Namespace) String() string { return n.DB + "." + n.Collection }

// Find is what a stage asks of a collection.
type Find struct {
	Filter *match.Filter // nil: all
	Sort   *sortkey.Spec // nil: any order
	Skip   int64
	Limit  int64 // 0: none
}

// World are the collections of one snapshot: the same that the pipeline's own documents are of.
type World interface {
	// Find gives the documents of a collection; none if there is no such collection.
	Find(ns Namespace, f Find) (Iterator, error)
	// View is what a view is made of: its collection and its pipeline. A collection is itself, with no pipeline.
	View(ns Namespace) (Namespace, []bson.Raw, error)
	// Indexed says whether a test of path for equality can use an index.
	Indexed(ns Namespace, path string) bool
}

// Sink is what a pipeline writes to.
type Sink interface {
	// Out makes docs the content of a collection. Either all of it becomes visible at once, or nothing is changed.
	Out(ns Namespace, docs Iterator) error
	// CheckMerge says whether $merge may identify documents by the fields on: a unique index must have them for its key.
	CheckMerge(ns Namespace, on []string) error
	// Merge gives f the document whose fields on have the values that they have in doc, nil if there is none, and puts what f
	// answers in its place; nil leaves things as they are.
	Merge(ns Namespace, on []string, doc bson.Raw, f func(old bson.Raw) (bson.Raw, error)) error
}

// Statistics are what stages tell about the server.
type Statistics interface {
	// Statistics are the documents of a stage: $collStats, $indexStats, $currentOp, $planCacheStats, $listLocalSessions.
	Statistics(stage string, ns Namespace, arg bson.RawValue) (Iterator, error)
}
