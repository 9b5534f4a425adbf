package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/query/project"
	"github.com/multiforadb/multiforadb/engine/query/sortkey"
	"github.com/multiforadb/multiforadb/engine/query/update"
	"github.com/multiforadb/multiforadb/engine/value"
)

// place is where a pipeline stands.
type place uint8

const (
	onTop place = iota
	inFacet
	inLookup // also $unionWith and $graphLookup
	inUpdate
)

// parser reads one pipeline.
type parser struct {
	opts         *Options
	table        []stageRow // tables are carried because their rows refer to the parser
	accumulators []accumulatorRow
	windows      []windowRow
	scope        expr.Scope
	ns           Namespace
	place        place
	depth        int
}

func (p *parser) pipeline(stages []bson.Raw) (*Pipeline, error) {
	if len(stages) > stagesMax {
		return nil, code(7749501).Errorf("pipeline length must be no longer than %d stages", stagesMax)
	}
	if p.depth > depthMax {
		return nil, mongoerr.MaxSubPipelineDepthExceeded.Errorf("maximum number of nested pipelines (%d) exceeded", depthMax)
	}
	r := &Pipeline{opts: p.opts}
	for i, raw := range stages {
		it := value.Elements(raw)
		if !it.Next() || value.Count(raw) != 1 {
			return nil, mongoerr.LocationPipelineStageForm.Errorf("a pipeline stage specification object must contain exactly one field.")
		}
		name, arg := string(it.Name()), it.Value()
		row, err := p.find(name)
		if err != nil {
			return nil, err
		}
		if err := p.checkPlace(row, i, len(stages)); err != nil {
			return nil, err
		}
		if p.opts.Strict && row.unstable && !onlyCounts(name, arg) {
			return nil, mongoerr.APIStrictError.Errorf("stage %s is not allowed with 'apiStrict: true' in API Version 1", name)
		}
		s, err := row.parse(p, arg)
		switch name {
		case "$project", "$addFields", "$set":
			err = mongoerr.During("Invalid "+name, err)
		}
		if err != nil {
			return nil, err
		}
		r.steps = append(r.steps, step{name, arg, s})
	}
	if !p.opts.Plain {
		p.optimize(r)
		p.split(r)
	}
	return r, nil
}

// find finds a stage that there is.
func (p *parser) find(name string) (stageRow, error) {
	i, ok := slices.BinarySearchFunc(p.table, name, func(r stageRow, name string) int { return strings.Compare(r.name, name) })
	switch {
	case !ok:
		return stageRow{}, mongoerr.LocationPipelineStageUnknown.Errorf("unrecognized pipeline stage name: '%s'", name)
	case p.table[i].refused != "":
		return stageRow{}, mongoerr.NotImplemented.Errorf("the stage %s is not implemented: %s", name, p.table[i].refused)
	}
	return p.table[i], nil
}

// onlyCounts is {$collStats: {count: {}}}: of that stage the stable API has so much.
func onlyCounts(name string, arg bson.RawValue) bool {
	return name == "$collStats" && arg.Type == bson.TypeEmbeddedDocument && value.Count(arg.Value) == 1 && value.Lookup(arg.Value, "count").Type != 0
}

// checkPlace says whether a stage may stand as number i of n.
func (p *parser) checkPlace(row stageRow, i, n int) error {
	switch {
	case row.first && i > 0:
		return code(40602).Errorf("%s is only valid as the first stage in a pipeline", row.name)
	case row.last && i < n-1:
		return code(40601).Errorf("%s can only be the final stage in the pipeline", row.name)
	case p.place == inFacet && (row.first || row.last || row.name == "$facet"):
		return code(40600).Errorf("%s is not allowed to be used within a $facet stage", row.name)
	case p.place == inLookup && row.last:
		return code(51047).Errorf("%s is not allowed within a $lookup's or $unionWith's sub-pipeline", row.name)
	case p.place == inUpdate && !row.update:
		return mongoerr.InvalidOptions.Errorf("%s is not allowed to be used within an update", row.name)
	case row.database && p.ns.Collection != "" && p.place == onTop:
		return mongoerr.InvalidNamespace.Errorf("%s must be run on a database with {aggregate: 1}, and not on a collection",
			row.name)
	}
	return nil
}

// sub is a parser for a pipeline inside of this one.
func (p *parser) sub(at place, ns Namespace, scope expr.Scope) *parser {
	q := *p
	q.place, q.ns, q.scope = at, ns, scope
	q.depth++
	return &q
}

// expression reads an expression.
func (p *parser) expression(v bson.RawValue) (*expr.Expr, error) { return expr.Parse(v, p.scope) }

// filter reads a filter.
func (p *parser) filter(raw bson.Raw) (*match.Filter, error) { return match.Parse(raw, p.matching()) }

// both is the filter of two conditions.
func (p *parser) both(a, b bson.Raw) (*match.Filter, error) {
	if value.Count(a) == 0 {
		return p.filter(b)
	}
	if value.Count(b) == 0 {
		return p.filter(a)
	}
	d := newDocument()
	d.field("$and", arrayOf([]bson.RawValue{value.Document(a), value.Document(b)}))
	return p.filter(d.raw())
}

func (p *parser) matching() match.Options {
	o := match.Options{Expr: Filter(p.opts.Context, p.scope)}
	if p.opts.Collation != nil {
		o.Collation = p.opts.Collation
	}
	return o
}

// sort reads a sort.
func (p *parser) sort(raw bson.Raw) (*sortkey.Spec, error) {
	var o sortkey.Options
	if p.opts.Collation != nil {
		o.Collation = p.opts.Collation
	}
	return sortkey.Parse(raw, o)
}

// projection reads a $project.
func (p *parser) projection(raw bson.Raw) (*project.Projection, error) {
	return project.Parse(raw, project.Options{Match: p.matching(), Expr: Projection(p.opts.Context, p.scope), Pipeline: true})
}

// Filter is what package match needs for $expr.
func Filter(c *expr.Context, s expr.Scope) func(bson.RawValue) (match.Predicate, error) {
	return func(v bson.RawValue) (match.Predicate, error) {
		e, err := expr.Parse(v, s)
		if err != nil {
			return nil, err
		}
		return func(doc bson.Raw) (bool, error) {
			r, err := e.Eval(c, doc)
			return err == nil && value.Truth(r), err
		}, nil
	}
}

// Projection is what package project needs for computed fields.
func Projection(c *expr.Context, s expr.Scope) func(bson.RawValue) (project.Expression, error) {
	return func(v bson.RawValue) (project.Expression, error) {
		e, err := expr.Parse(v, s)
		if err != nil {
			return nil, err
		}
		return computed{e, c}, nil
	}
}

// computed is an expression with what it is evaluated with.
type computed struct {
	*expr.Expr
	c *expr.Context
}

func (e computed) Eval(doc bson.Raw) (bson.RawValue, error) { return e.Expr.Eval(e.c, doc) }

// Transform is what package update needs for pipelines: what the stages make of one document.
func Transform(c *expr.Context, s expr.Scope) func(stages bson.Raw) (update.Transform, error) {
	return func(stages bson.Raw) (update.Transform, error) {
		list, err := Split(value.Array(stages))
		if err != nil {
			return nil, err
		}
		opts := Options{Context: c, Scope: s, Memory: MemoryMax, Plain: true}
		q := &parser{opts: &opts, table: stageTable, accumulators: accumulators, windows: windows, scope: s, place: inUpdate}
		p, err := q.pipeline(list)
		if err != nil {
			return nil, err
		}
		return func(doc bson.Raw) (bson.Raw, error) {
			it := p.RunAll(Documents([]bson.Raw{doc}))
			r, err := it.Next()
			if err != nil {
				return nil, err
			}
			return copyOf(r), it.Close()
		}, nil
	}
}

// fields reads a stage's document of named arguments. Each name must be one of names; the values are in their order.
func fields(stage string, arg bson.RawValue, names ...string) ([]bson.RawValue, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.FailedToParse.Errorf("the %s specification must be an object, but found %s",
			stage, value.TypeName(arg.Type))
	}
	values := make([]bson.RawValue, len(names))
	for it := value.Elements(arg.Value); it.Next(); {
		i := slices.Index(names, string(it.Name()))
		if i < 0 {
			return nil, mongoerr.LocationCommandFieldUnknown.Errorf("BSON field '%s.%s' is an unknown field.", stage, it.Name())
		}
		values[i] = it.Value()
	}
	return values, nil
}

func missing(stage, field string) error {
	return mongoerr.LocationCommandFieldMissing.Errorf("BSON field '%s.%s' is missing but a required field", stage, field)
}

// text is a string argument.
func text(stage, field string, v bson.RawValue) (string, error) {
	switch v.Type {
	case bson.TypeString:
		return string(value.StringBytes(v)), nil
	case 0:
		return "", missing(stage, field)
	}
	return "", mongoerr.TypeMismatch.Errorf("BSON field '%s.%s' is the wrong type '%s', expected type 'string'",
		stage, field, value.TypeName(v.Type))
}

// fieldPath checks a path that is not behind a dollar and splits it.
func fieldPath(s string) ([]string, error) {
	switch {
	case s == "":
		return nil, mongoerr.LocationFieldPathEmpty.Errorf("FieldPath cannot be constructed with empty string")
	case strings.HasSuffix(s, "."):
		return nil, mongoerr.LocationFieldPathTrailingDot.Errorf("FieldPath must not end with a '.' ('%s')", s)
	case strings.Count(s, ".") >= 200:
		return nil, mongoerr.Overflow.Errorf("FieldPath is too long")
	}
	names := strings.Split(s, ".")
	for _, name := range names {
		switch {
		case name == "":
			return nil, mongoerr.LocationFieldNameEmpty.Errorf("FieldPath field names may not be empty strings ('%s')", s)
		case name[0] == '$' && name != "$id" && name != "$ref" && name != "$db":
			return nil, mongoerr.LocationFieldPathDollar.Errorf("FieldPath field names may not start with '$' ('%s')", s)
		case strings.IndexByte(name, 0) >= 0:
			return nil, code(16411).Errorf("FieldPath field names may not contain '\\0'")
		}
	}
	return names, nil
}

// pathOf is the path of a "$path".
func pathOf(stage string, v bson.RawValue, wrong code) (string, error) {
	s := string(value.StringBytes(v))
	if v.Type != bson.TypeString || !strings.HasPrefix(s, "$") || strings.HasPrefix(s, "$$") {
		return "", wrong.Errorf("path option to %s stage should be prefixed with a '$': %s", stage, value.Brief(v, 100))
	}
	_, err := fieldPath(s[1:])
	return s[1:], err
}
