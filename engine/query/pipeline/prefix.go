package pipeline

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Prefix is the front of a pipeline as a find: what a plan over indexes can do before the rest runs.
type Prefix struct {
	Find
	// Fields are the paths whose values the rest looks at and the result is made of, so that a plan may leave out others; nil if
	// documents are needed whole.
	Fields []string
	// Distinct is a path of whose values the first document each is enough, in the order of Sort; "": all documents are asked for.
	Distinct string
}

// Prefix is the front of the pipeline.
func (p *Pipeline) Prefix() Prefix { return p.prefix }

// split takes the prefix off: a $match, a $sort, then any $skip and $limit, each of them only if nothing else stands before it.
func (p *parser) split(r *Pipeline) {
	at := func(i int) stage {
		if i < len(r.steps) {
			return r.steps[i].stage
		}
		return nil
	}
	i := 0
	if m, ok := at(i).(*matchStage); ok && m.rate == 1 {
		r.prefix.Filter = m.filter
		i++
	}
	if s, ok := at(i).(*sortStage); ok {
		r.prefix.Sort = s.spec
		i++
	}
	for {
		if s, ok := at(i).(*skipStage); ok {
			skip, limit := r.prefix.Skip+s.n, r.prefix.Limit
			if skip < 0 || limit > 0 && limit <= s.n {
				break // nothing is left, which no find can say
			}
			if r.prefix.Skip = skip; limit > 0 {
				r.prefix.Limit = limit - s.n
			}
		} else if l, ok := at(i).(*limitStage); ok {
			if r.prefix.Limit == 0 || l.n < r.prefix.Limit {
				r.prefix.Limit = l.n
			}
		} else {
			break
		}
		i++
	}
	r.front = i
	r.prefix.Fields = r.reads(r.steps[i:])
	if g, ok := at(i).(*groupStage); ok && r.prefix.Skip == 0 && r.prefix.Limit == 0 {
		r.prefix.Distinct = g.distinct(r.prefix.Sort)
	}
}

// distinct is the path that the groups are by, if all that is said of a group is said by its first document in the order of sort.
func (s *groupStage) distinct(sort *sortkey.Spec) string {
	path, ok := s.id.Field()
	if !ok || sort == nil && len(s.accs) > 0 || sort != nil && (sort.Natural() != 0 || sort.Fields()[0].Path != path) {
		return ""
	}
	for _, a := range s.accs {
		if _, ok := a.make().(*first); !ok {
			return ""
		}
	}
	return path
}

// reads are the paths that stages need of the documents they are given; nil is all.
func (r *Pipeline) reads(steps []step) []string {
	fields := []string{}
	for _, s := range steps {
		var paths []string
		all, last := false, false
		switch s := s.stage.(type) {
		case *limitStage, *skipStage:
		case *countStage:
			last = true
		case *matchStage:
			paths, all = pathsOf(s.filter.Root())
			all = !all
		case *sortStage:
			for _, f := range s.spec.Fields() {
				paths = append(paths, f.Path)
			}
		case *projectStage:
			paths, all = s.projection.Reads()
			last = true
		case *groupStage:
			paths, all = s.reads()
			last = true
		default:
			return nil
		}
		if all {
			return nil
		}
		if fields = append(fields, paths...); last {
			slices.Sort(fields)
			return slices.Compact(fields)
		}
	}
	return nil
}

func (s *groupStage) reads() ([]string, bool) {
	paths, all := s.id.Reads()
	for _, a := range s.accs {
		for _, e := range a.exprs {
			p, whole := e.Reads()
			paths, all = append(slices.Clip(paths), p...), all || whole
		}
	}
	return paths, all
}

// Counts says whether the rest does nothing but count the documents that the prefix gives, as the drivers' countDocuments has it:
// {$group: {_id: 1, n: {$sum: 1}}}, or {$count: "n"}. make is then the answer for n documents, nil if it has none.
func (p *Pipeline) Counts() (make func(n int64) bson.Raw, ok bool) {
	if len(p.steps) != p.front+1 {
		return nil, false
	}
	switch s := p.steps[p.front].stage.(type) {
	case *countStage:
		return func(n int64) bson.Raw {
			if n == 0 {
				return nil
			}
			d := newDocument()
			d.field(s.name, number(n))
			return d.raw()
		}, true
	case *groupStage:
		id, constant := s.id.Constant()
		if !constant || len(s.accs) != 1 || !countsOne(s.accs[0]) {
			return nil, false
		}
		if id.Type == 0 {
			id = value.Null
		}
		return func(n int64) bson.Raw {
			if n == 0 {
				return nil
			}
			d := newDocument()
			d.field("_id", id)
			d.field(s.names[0], number(n))
			return d.raw()
		}, true
	}
	return nil, false
}

// countsOne says whether an accumulator is {$sum: 1} or {$count: {}}.
func countsOne(a *accumulation) bool {
	switch a.make().(type) {
	case *counter:
		return true
	case *sum:
		v, ok := a.exprs[0].Constant()
		return ok && v.Type == bson.TypeInt32 && value.Equal(v, value.Int32(1))
	}
	return false
}
