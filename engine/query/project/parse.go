package project

import (
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/match"
	"github.com/multiforadb/multiforadb/engine/value"
)

// MongoDB's numbers of what can be wrong with a projection, beside those of package mongoerr.
const (
	codeNoQuery             mongoerr.Code = 51050
	codeEmptyBelow          mongoerr.Code = 51270
	codeEmpty               mongoerr.Code = 51272
	codeExpressionExcluding mongoerr.Code = 31252
	codePositionThenElem    mongoerr.Code = 31255
	codeElemThenPosition    mongoerr.Code = 31256
	codeSliceSkip           mongoerr.Code = 31257
	codeSliceLimit          mongoerr.Code = 31258
	codeSliceLimitPositive  mongoerr.Code = 31259
	codePositionValue       mongoerr.Code = 31271
	codeSliceForm           mongoerr.Code = 31272
	codeSliceType           mongoerr.Code = 31273
	codeElemMatchObject     mongoerr.Code = 31274
	codeElemMatchNested     mongoerr.Code = 31275
	codePositionTwice       mongoerr.Code = 31276
	codePositionMiddle      mongoerr.Code = 31394
	codePositionExcluding   mongoerr.Code = 31395
	codePositionMismatch    mongoerr.Code = 51247
)

// partsMax is how many parts a path may have, MongoDB's limit.
const partsMax = 200

// direction is what the projection turned out to do.
type direction uint8

const (
	undecided direction = iota
	including
	excluding
)

type parser struct {
	opts         Options
	root         *node
	direction    direction
	idIn         bool // _id: 1
	position     bool
	hasElemMatch bool
}

// Parse reads a projection. An empty one is nil without an error: documents stay as they are. (To $project it is an error.)
func Parse(spec bson.Raw, opts Options) (*Projection, error) {
	if len(spec) > 0 {
		if err := value.Validate(spec); err != nil {
			return nil, err
		}
	}
	if value.Count(spec) == 0 {
		if opts.Pipeline {
			return nil, codeEmpty.Errorf("projection specification must have at least one field")
		}
		return nil, nil
	}
	p := &parser{opts: opts, root: &node{}}
	for it := value.Elements(spec); it.Next(); {
		if err := p.field(p.root, "", string(it.Name()), it.Value()); err != nil {
			return nil, err
		}
	}
	if p.direction == undecided {
		// Nothing but _id, $slice and $elemMatch.
		p.direction = excluding
		if p.idIn || p.hasElemMatch {
			p.direction = including
		}
	}
	p.finishID()
	r := &Projection{spec: spec, root: p.root, inclusive: p.direction == including, query: opts.Query, positional: p.position}
	r.plain = p.root.finish() && r.inclusive && !p.position
	return r, nil
}

// finishID makes _id a field like the others: what the direction says of it anyway is taken out of the tree, what is kept
// without being named is put in.
func (p *parser) finishID() {
	i := slices.IndexFunc(p.root.children, func(c *node) bool { return c.name == "_id" })
	switch {
	case i < 0 && p.direction == including:
		p.root.children = append(p.root.children, &node{name: "_id", kind: take})
	case i >= 0 && p.root.children[i].kind == drop && p.direction == including,
		i >= 0 && p.root.children[i].kind == take && p.direction == excluding:
		p.root.children = slices.Delete(p.root.children, i, i+1)
	}
}

// finish fills in what depends on all children, and says whether there is nothing but take below.
func (n *node) finish() (plain bool) {
	plain = true
	n.byName = nil // _id may have gone
	if len(n.children) > manyChildren {
		n.index()
	}
	for i, c := range n.children {
		c.at = i
		plain = c.finish() && (c.kind == branch || c.kind == take) && plain
		n.makes = n.makes || c.makes || c.kind == computed || c.kind == elemMatch
	}
	return plain
}

// field reads {name: v} below a node; prefix is the node's path with a dot.
func (p *parser) field(n *node, prefix, name string, v bson.RawValue) error {
	path := prefix + name
	if rest, ok := strings.CutSuffix(name, ".$"); ok && !p.opts.Pipeline {
		return p.positional(n, prefix, rest, v)
	}
	switch {
	case strings.Contains(name, ".$.") && !p.opts.Pipeline:
		return errMiddle(path)
	case v.Type == bson.TypeEmbeddedDocument:
		return p.object(n, prefix, name, v)
	case v.Type != bson.TypeBoolean && !value.IsNumber(v.Type):
		return p.expression(n, prefix, name, v)
	}
	id := n == p.root && name == "_id"
	if value.Truth(v) {
		p.idIn = p.idIn || id
		if !id && p.direction == excluding {
			return mongoerr.LocationProjectInclusionIn.Errorf("cannot do inclusion on field %s in exclusion projection", path)
		} else if !id {
			p.direction = including
		}
		return p.add(n, prefix, name, &node{kind: take})
	}
	if !id && p.direction == including {
		return mongoerr.LocationProjectExclusionIn.Errorf("cannot do exclusion on field %s in inclusion projection", path)
	} else if !id {
		p.direction = excluding
	}
	return p.add(n, prefix, name, &node{kind: drop})
}

// object reads a document behind a name: an operator, an expression, or a projection of the fields below.
func (p *parser) object(n *node, prefix, name string, v bson.RawValue) error {
	path := prefix + name
	first := value.Elements(v.Value)
	if !first.Next() {
		return codeEmptyBelow.Errorf("an empty sub-projection is not a valid value. Found empty object at path '%s'", path)
	}
	if op := string(first.Name()); strings.HasPrefix(op, "$") {
		switch {
		case op == "$meta":
			return mongoerr.NotImplemented.Errorf("$meta, used at '%s', is not implemented", path)
		case op == "$slice" && !p.opts.Pipeline && !isSliceExpression(first.Value()):
			return p.slice(n, prefix, name, first.Value())
		case op == "$elemMatch" && !p.opts.Pipeline:
			return p.elemMatch(n, prefix, name, first.Value())
		}
		return p.expression(n, prefix, name, v)
	}
	below, err := p.walk(n, prefix, name, true)
	if err != nil {
		return err
	}
	for it := value.Elements(v.Value); it.Next(); {
		if err := p.field(below, path+".", string(it.Name()), it.Value()); err != nil {
			return err
		}
	}
	return nil
}

// walk goes along a path below n and makes the nodes that are missing. At the end there must be none yet, unless it may be a
// branch.
func (p *parser) walk(n *node, prefix, path string, mayBranch bool) (*node, error) {
	if err := checkPath(prefix + path); err != nil {
		return nil, err
	}
	parts := strings.Split(path, ".")
	for i, name := range parts {
		c := n.find([]byte(name))
		last := i == len(parts)-1
		switch {
		case c == nil:
			c = &node{name: name}
			n.add(c)
		case c.kind != branch && !last:
			return nil, mongoerr.LocationProjectPathRemaining.Errorf("path collision at %s remaining portion %s", prefix+path,
				strings.Join(parts[i+1:], "."))
		case last && (c.kind != branch || !mayBranch):
			return nil, mongoerr.LocationProjectPathCollision.Errorf("path collision at %s", prefix+path)
		}
		n = c
	}
	return n, nil
}

// add puts a leaf at a path.
func (p *parser) add(n *node, prefix, path string, leaf *node) error {
	at, err := p.walk(n, prefix, path, false)
	if err != nil {
		return err
	}
	name := at.name
	*at = *leaf
	at.name = name
	return nil
}

func checkPath(path string) error {
	switch {
	case path == "":
		return mongoerr.LocationFieldPathEmpty.Errorf("FieldPath cannot be constructed with empty string")
	case strings.HasSuffix(path, "."):
		return mongoerr.LocationFieldPathTrailingDot.Errorf("FieldPath must not end with a '.' ('%s')", path)
	case strings.Count(path, ".") >= partsMax:
		return mongoerr.Overflow.Errorf("FieldPath is too long: %d parts at most", partsMax)
	}
	i := 0
	for part := range strings.SplitSeq(path, ".") {
		switch {
		case part == "":
			return mongoerr.LocationFieldNameEmpty.Errorf("FieldPath field names may not be empty strings ('%s')", path)
		case part[0] == '$' && (i == 0 || part != "$id" && part != "$ref" && part != "$db"):
			return mongoerr.LocationFieldPathDollar.Errorf("FieldPath field names may not start with '$' ('%s'); "+
				"$getField or $setField reach such a field", path)
		}
		i++
	}
	return nil
}

func errMiddle(path string) error {
	return codePositionMiddle.Errorf("the positional operator stands in the middle of '%s'; it may only be used at the end", path)
}

// positional reads "a.$": 1, without the ".$".
func (p *parser) positional(n *node, prefix, path string, v bson.RawValue) error {
	switch {
	case strings.Contains(path, ".$.") || strings.HasSuffix(path, ".$"):
		return errMiddle(prefix + path + ".$")
	case v.Type != bson.TypeBoolean && !value.IsNumber(v.Type):
		return codePositionValue.Errorf("positional projection '%s%s.$' can only be included, not be %s", prefix, path, value.Brief(v, 200))
	case !value.Truth(v) || p.direction == excluding:
		return codePositionExcluding.Errorf("positional projection '%s%s.$' cannot be used with exclusion", prefix, path)
	case p.position:
		return codePositionTwice.Errorf("cannot specify more than one positional projection per query")
	case p.hasElemMatch:
		return codeElemThenPosition.Errorf("cannot specify positional operator and $elemMatch")
	case p.opts.Query == nil:
		return codeNoQuery.Errorf("positional projection '%s%s.$' cannot be used without a query", prefix, path)
	}
	p.position, p.direction = true, including
	if err := p.add(n, prefix, path, &node{kind: take}); err != nil {
		return err
	}
	// Mark the way.
	n = p.root
	for name := range strings.SplitSeq(prefix+path, ".") {
		n = n.find([]byte(name))
		n.position = true
	}
	return nil
}

// isSliceExpression tells {$slice: ["$a", 2]}, an expression, from {$slice: [1, 2]}.
func isSliceExpression(v bson.RawValue) bool {
	if v.Type != bson.TypeArray {
		return false
	}
	first := value.At(v.Value, 0)
	return first.Type != 0 && !value.IsNumber(first.Type)
}

func (p *parser) slice(n *node, prefix, name string, v bson.RawValue) error {
	path := prefix + name
	s := slice{}
	switch {
	case value.IsNumber(v.Type):
		if s.limit = int32Of(v); s.limit < 0 {
			s.skip, s.limit = s.limit, -s.limit
		}
	case v.Type != bson.TypeArray:
		return codeSliceType.Errorf("$slice at '%s' only supports numbers and [skip, limit] arrays", path)
	case value.Count(v.Value) != 2:
		return codeSliceForm.Errorf("$slice array argument at '%s' should be of form [skip, limit]", path)
	default:
		skip, limit := value.At(v.Value, 0), value.At(v.Value, 1)
		if !value.IsNumber(skip.Type) {
			return codeSliceSkip.Errorf("$slice 'skip' argument at '%s' should be numeric", path)
		}
		if !value.IsNumber(limit.Type) {
			return codeSliceLimit.Errorf("$slice 'limit' argument at '%s' should be numeric", path)
		}
		if s.skip, s.limit = int32Of(skip), int32Of(limit); s.limit <= 0 {
			return codeSliceLimitPositive.Errorf("$slice limit at '%s' must be positive", path)
		}
	}
	return p.add(n, prefix, name, &node{kind: sliced, slice: s})
}

func int32Of(v bson.RawValue) int {
	return int(min(max(value.TruncateInt64(v), -math.MaxInt32), math.MaxInt32))
}

func (p *parser) elemMatch(n *node, prefix, name string, v bson.RawValue) error {
	path := prefix + name
	switch {
	case v.Type != bson.TypeEmbeddedDocument:
		return codeElemMatchObject.Errorf("elemMatch at '%s': invalid argument, object required, but got %s", path, value.TypeName(v.Type))
	case p.position:
		return codePositionThenElem.Errorf("cannot specify positional operator and $elemMatch")
	case strings.Contains(path, "."):
		return codeElemMatchNested.Errorf("cannot use $elemMatch projection on a nested field (currently unsupported): %s", path)
	}
	inner := bsoncore.NewDocumentBuilder().AppendValue("$elemMatch", bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: v.Value}).Build()
	f, err := match.Parse(bson.Raw(bsoncore.NewDocumentBuilder().AppendDocument(path, inner).Build()), p.opts.Match)
	if err != nil {
		return err
	}
	p.hasElemMatch = true
	return p.add(n, prefix, name, &node{kind: elemMatch, match: f})
}

func (p *parser) expression(n *node, prefix, name string, v bson.RawValue) error {
	path := prefix + name
	switch {
	case p.direction == excluding:
		return codeExpressionExcluding.Errorf("cannot use an expression (at '%s') in an exclusion projection", path)
	case p.opts.Expr == nil:
		return mongoerr.NotImplemented.Errorf("computed fields in projections (at '%s') are not implemented here", path)
	}
	e, err := p.opts.Expr(v)
	if err != nil {
		return err
	}
	p.direction = including
	return p.add(n, prefix, name, &node{kind: computed, expr: e})
}
