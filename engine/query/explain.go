package query

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Explain is the plan as a tree of stages with MongoDB's names, innermost the one that finds records. r is a run of it whose
// numbers are to be shown, or nil.
func (p *Plan) Explain(r *Run) bson.D {
	stage := p.scan.explain(p, r)
	wrap := func(name string, fields ...bson.E) {
		outer := append(bson.D{{Key: "stage", Value: name}}, fields...)
		stage = append(outer, bson.E{Key: "inputStage", Value: stage})
	}
	if !p.sorted {
		fields := bson.D{{Key: "sortPattern", Value: sortPattern(p)}, {Key: "memLimit", Value: p.SortMemory}}
		if p.Limit > 0 {
			fields = append(fields, bson.E{Key: "limitAmount", Value: p.Skip + p.Limit})
		}
		wrap("SORT", append(fields, bson.E{Key: "type", Value: "simple"})...)
	}
	if p.Skip > 0 {
		wrap("SKIP", bson.E{Key: "skipAmount", Value: p.Skip})
	}
	if p.Limit > 0 {
		wrap("LIMIT", bson.E{Key: "limitAmount", Value: p.Limit})
	}
	switch {
	case p.ReturnKey:
		wrap("RETURN_KEY")
	case p.Project != nil:
		name := "PROJECTION_DEFAULT"
		switch {
		case p.cover != nil:
			name = "PROJECTION_COVERED"
		case p.Project.Plain():
			name = "PROJECTION_SIMPLE"
		}
		wrap(name, bson.E{Key: "transformBy", Value: p.Project.Raw()})
	}
	if r != nil {
		stage = append(bson.D{stage[0], {Key: "nReturned", Value: r.returned}}, stage[1:]...)
	}
	return stage
}

// Rejected are the plans that were thought of and not taken.
func (p *Plan) Rejected() bson.A {
	out := bson.A{}
	for i := range p.rejected {
		out = append(out, p.rejected[i].explain(p, nil))
	}
	return out
}

// explain is the scan with the stage that fetches, if there is one.
func (s *scan) explain(p *Plan, r *Run) bson.D {
	filter := func(d bson.D) bson.D {
		left := s.residual(p.Filter)
		if s == &p.scan && p.sieve != nil {
			left = p.sieve.rest
		}
		if left != nil {
			d = append(d, bson.E{Key: "filter", Value: left.Raw()})
		}
		return d
	}
	fetch := func(input bson.D) bson.D {
		d := filter(bson.D{{Key: "stage", Value: "FETCH"}})
		if r != nil {
			d = append(d, bson.E{Key: "docsExamined", Value: r.docs})
		}
		return append(d, bson.E{Key: "inputStage", Value: input})
	}
	switch s.kind {
	case scanRecords:
		d := append(filter(bson.D{{Key: "stage", Value: "COLLSCAN"}}), bson.E{Key: "direction", Value: direction(s.reverse)})
		if r != nil {
			d = append(d, bson.E{Key: "docsExamined", Value: r.docs})
		}
		return d
	case scanID:
		d := bson.D{{Key: "stage", Value: "IDHACK"}}
		if r != nil {
			d = append(d, bson.E{Key: "keysExamined", Value: r.keys}, bson.E{Key: "docsExamined", Value: r.docs})
		}
		return d
	case scanIndex:
		scan := s.explainIndex(p)
		if r != nil {
			scan = append(scan, bson.E{Key: "keysExamined", Value: r.keys})
		}
		switch {
		case s == &p.scan && p.cover != nil:
			return filter(scan)
		case p.OnlyIDs && s.residual(p.Filter) == nil:
			if s.bounds.contiguous() {
				scan[0].Value = "COUNT_SCAN"
			}
			return scan
		case s == &p.scan && p.sieve != nil:
			scan = append(scan, bson.E{Key: "filter", Value: p.sieve.filter.Raw()})
		}
		return fetch(scan)
	case scanUnion, scanMerge:
		name := "OR"
		if s.kind == scanMerge {
			name = "SORT_MERGE"
		}
		inputs := bson.A{}
		for i := range s.parts {
			input := s.parts[i].explainIndex(p)
			if r != nil && i < len(r.parts) {
				input = append(input, bson.E{Key: "keysExamined", Value: r.parts[i].keys})
			}
			inputs = append(inputs, input)
		}
		d := bson.D{{Key: "stage", Value: name}}
		if s.kind == scanMerge {
			d = append(d, bson.E{Key: "sortPattern", Value: sortPattern(p)})
		}
		return fetch(append(d, bson.E{Key: "inputStages", Value: inputs}))
	}
	return bson.D{{Key: "stage", Value: "EOF"}}
}

func (s *scan) explainIndex(p *Plan) bson.D {
	bounds := bson.D{}
	if p.Min == nil && p.Max == nil {
		for i, f := range s.index.Fields {
			list := bson.A{}
			for _, v := range s.sets[i] {
				list = append(list, v.String())
			}
			bounds = append(bounds, bson.E{Key: f.Path, Value: list})
		}
	}
	for _, e := range []struct {
		name string
		key  bson.Raw
	}{{"startKey", p.Min}, {"endKey", p.Max}} {
		if e.key != nil {
			bounds = append(bounds, bson.E{Key: e.name, Value: e.key})
		}
	}
	name := "IXSCAN"
	if s.distinct {
		name = "DISTINCT_SCAN"
	}
	return bson.D{
		{Key: "stage", Value: name}, {Key: "keyPattern", Value: s.index.Key}, {Key: "indexName", Value: s.index.Name},
		{Key: "isMultiKey", Value: s.index.Multikey != 0}, {Key: "isUnique", Value: s.index.Unique}, {Key: "isSparse", Value: s.index.Sparse},
		{Key: "isPartial", Value: s.index.Partial != nil}, {Key: "indexVersion", Value: 2}, {Key: "direction", Value: direction(s.reverse)},
		{Key: "indexBounds", Value: bounds},
	}
}

func direction(reverse bool) string {
	if reverse {
		return "backward"
	}
	return "forward"
}

func sortPattern(p *Plan) bson.D {
	d := bson.D{}
	for _, f := range p.Sort.Fields() {
		n := 1
		if f.Descending {
			n = -1
		}
		d = append(d, bson.E{Key: f.Path, Value: n})
	}
	return d
}
