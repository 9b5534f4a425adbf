package query

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Wild is what a plan knows of a wildcard index beside what it knows of others.
type Wild struct {
	*key.Wild
	Kind key.Kind // of the values
	// Arrays are the paths at which some document has an array, sorted; Unknown says that they were too many to list.
	Arrays  []string
	Unknown bool
}

// at is the part of a wildcard index that is about path, as an index with two fields: {$_path: 1, path: 1}. It is nil if the index does
// not hold all that is at path.
//
// It is sparse: a document without a value there has no entry. One whose value is a document has its entries at the paths
// below, which is why a set with documents in it makes the scan go over those, too.
func (x *Index) at(path string) *Index {
	covers, whole := x.Wild.Covers(path)
	if !covers || numbered(path) {
		return nil
	}
	at := *x
	at.path, at.whole, at.Sparse = path, whole, true
	at.Fields = []Field{{Path: key.WildPathField}, {Path: path, Kind: x.Wild.Kind}}
	at.Multikey = 0
	if x.Wild.Unknown || slices.ContainsFunc(x.Wild.Arrays, func(array string) bool { return path == array || strings.HasPrefix(path, array+".") }) {
		at.Multikey = 1 << 1
	}
	direction := int32(1)
	if x.Wild.Kind == key.Descending {
		direction = -1
	}
	at.Key = bson.Raw(bsoncore.NewDocumentBuilder().AppendInt32(key.WildPathField, 1).AppendInt32(path, direction).Build())
	return &at
}

// expand puts in the place of each wildcard index what it is for the paths that the filter tests.
func (pl *planner) expand(indexes []*Index) []*Index {
	wild := func(x *Index) bool { return x.Wild != nil }
	if !slices.ContainsFunc(indexes, wild) {
		return indexes
	}
	paths := testedPaths(nil, "", pl.nodes)
	var out []*Index
	for _, x := range indexes {
		if x.Wild == nil {
			out = append(out, x)
			continue
		}
		for _, path := range paths {
			if at := x.at(path); at != nil {
				out = append(out, at)
			}
		}
	}
	return out
}

// testedPaths are the paths that limits may be about.
func testedPaths(paths []string, prefix string, nodes []match.Node) []string {
	for _, n := range nodes {
		switch n := n.(type) {
		case *match.And:
			paths = testedPaths(paths, prefix, n.Nodes)
		case *match.Or:
			paths = testedPaths(paths, prefix, n.Nodes)
		case *match.Not:
			paths = testedPaths(paths, prefix, []match.Node{n.Node})
		case *match.ElemMatchObject:
			paths = testedPaths(paths, prefix+n.Path+".", conjunction(n.Node))
		default:
			if path, ok := match.PathOf(n); ok && !slices.Contains(paths, prefix+path) {
				paths = append(paths, prefix+path)
			}
		}
	}
	return paths
}

// objectSet is all documents.
var objectSet = bracket(bson.TypeEmbeddedDocument)

// wildSets are the sets of the two fields of a part of a wildcard index, of which s is the filter's for the value. ok is false if the
// index does not hold all that s is about.
func (x *Index) wildSets(s set) (path, values set, ok bool) {
	path = set{key.Point(value.String(x.path))}
	if len(s.intersect(objectSet)) == 0 {
		return path, s, true
	}
	below := key.Interval{From: key.Before(value.String(x.path + ".")), To: key.Before(value.String(x.path + "/"))}
	return append(path, below), setAll, x.whole
}
