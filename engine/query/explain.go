package query

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Explain is the plan as a tree of stages with MongoDB's names, innermost the one that finds records. r is a run of it whose
// numbers are to be shown, or nil.
func (p *Plan) Explain(r *Run) bson.D {
	stage := p.scan.explain(p)
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
	if p.Project != nil {
		name := "PROJECTION_DEFAULT"
		if p.Project.Plain() {
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
		out = append(out, p.rejected[i].explain(p))
	}
	return out
}

func (s *scan) explain(p *Plan) bson.D {
	filter := func(d bson.D) bson.D {
		if left := s.residual(p.Filter); left != nil {
			d = append(d, bson.E{Key: "filter", Value: left.Raw()})
		}
		return d
	}
	switch s.kind {
	case scanRecords:
		return append(filter(bson.D{{Key: "stage", Value: "COLLSCAN"}}), bson.E{Key: "direction", Value: direction(s.reverse)})
	case scanID:
		return bson.D{{Key: "stage", Value: "IDHACK"}}
	case scanIndex:
		if p.OnlyIDs && s.residual(p.Filter) == nil {
			return s.explainIndex()
		}
		return append(filter(bson.D{{Key: "stage", Value: "FETCH"}}), bson.E{Key: "inputStage", Value: s.explainIndex()})
	case scanUnion:
		inputs := bson.A{}
		for i := range s.parts {
			inputs = append(inputs, s.parts[i].explainIndex())
		}
		or := bson.D{{Key: "stage", Value: "OR"}, {Key: "inputStages", Value: inputs}}
		return append(filter(bson.D{{Key: "stage", Value: "FETCH"}}), bson.E{Key: "inputStage", Value: or})
	}
	return bson.D{{Key: "stage", Value: "EOF"}}
}

func (s *scan) explainIndex() bson.D {
	bounds := bson.D{}
	for i, f := range s.index.Fields {
		list := bson.A{}
		for _, v := range s.sets[i] {
			list = append(list, v.String())
		}
		bounds = append(bounds, bson.E{Key: f.Path, Value: list})
	}
	return bson.D{
		{Key: "stage", Value: "IXSCAN"}, {Key: "keyPattern", Value: s.index.Key}, {Key: "indexName", Value: s.index.Name},
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
