package command

import (
	"bytes"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// aggregate runs the pipelines that are a find or a count in other words, which is what drivers make of CountDocuments:
// $match, $sort, $skip, $limit and $project in this order, each at most once save for $match, and a count at the end.
func aggregate(c *call) error {
	v := c.first()
	if value.IsNumber(v.Type) {
		return mongoerr.NotImplemented.Errorf("Aggregations without a collection are not implemented yet")
	}
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	c.req.Body = bytes.Clone(c.req.Body) // the cursor may outlive the request
	var p pipeline
	var stages []bson.Raw
	batch := int64(firstBatch)
	given, cursorGiven := false, false
	err = c.fields(func(f field) (bool, error) {
		switch f.name {
		case "pipeline":
			given = true
			return true, f.documents(&stages)
		case "cursor":
			cursorGiven = true
			return true, f.cursorOptions(&batch)
		case "hint":
			return true, f.hint(&p.find.Hint)
		case "collation":
			return true, f.document(&p.find.Collation)
		case "allowDiskUse", "bypassDocumentValidation":
			return true, f.ignored(bson.TypeBoolean)
		case "let", "explain":
			return true, f.unsupported()
		}
		return false, nil
	})
	switch {
	case err != nil:
		return err
	case !given:
		return missing("aggregate", "pipeline")
	case !cursorGiven:
		return mongoerr.FailedToParse.Errorf("The 'cursor' option is required, except for aggregate with the explain argument")
	}
	for _, s := range stages {
		if err := p.add(s); err != nil {
			return err
		}
	}
	var src source
	if p.at == stageCount {
		src, err = p.count(c, ns)
	} else {
		src, err = c.db.Find(c.ctx, ns, p.find)
	}
	if err != nil {
		return err
	}
	return c.cursorReply(&cursor{ns: ns, src: src}, batch, false)
}

// pipeline is a find, or a count, under construction.
type pipeline struct {
	find    engine.Find
	matches []bson.Raw
	at      int // of the last stage, in the order that find has them

	// Of a count: the name and the type of the number, and the _id before it if a $group makes the document.
	countName string
	countType bson.Type
	id        bson.RawValue
}

const (
	stageMatch = iota + 1
	stageSort
	stageSkip
	stageLimit
	stageProject
	stageCount
)

// add takes the next stage.
func (p *pipeline) add(stage bson.Raw) error {
	it := value.Elements(stage)
	if !it.Next() || value.Count(stage) != 1 {
		return mongoerr.LocationPipelineStageForm.Errorf("A pipeline stage specification object must contain exactly one field.")
	}
	name, v := string(it.Name()), it.Value()
	f := field{parent: "aggregate", name: name, v: v}
	switch name {
	case "$match":
		var filter bson.Raw
		if v.Type != bson.TypeEmbeddedDocument {
			return mongoerr.Code(15959).Errorf("the match filter must be an expression in an object")
		}
		if err := f.document(&filter); err != nil {
			return err
		}
		p.matches = append(p.matches, filter)
		p.find.Filter = p.filter()
		return p.advance(stageMatch, name)
	case "$sort":
		if v.Type != bson.TypeEmbeddedDocument {
			return mongoerr.Code(15973).Errorf("the $sort key specification must be an object")
		}
		p.find.Sort = bson.Raw(v.Value)
		return p.advance(stageSort, name)
	case "$skip":
		if !value.IsNumber(v.Type) || whole(v) < 0 {
			return mongoerr.Code(5107200).Errorf("invalid argument to $skip stage: Expected a non-negative number in: $skip")
		}
		p.find.Skip = whole(v)
		return p.advance(stageSkip, name)
	case "$limit":
		if !value.IsNumber(v.Type) || whole(v) < 0 {
			return mongoerr.Code(5107201).Errorf("invalid argument to $limit stage: Expected a non-negative number in: $limit")
		}
		if p.find.Limit = whole(v); p.find.Limit == 0 {
			return mongoerr.Code(15958).Errorf("the limit must be positive")
		}
		return p.advance(stageLimit, name)
	case "$project":
		if v.Type != bson.TypeEmbeddedDocument || !plainProjection(v.Value) {
			return mongoerr.NotImplemented.Errorf("A $project of more than fields to keep or to leave out is not implemented yet")
		}
		p.find.Projection = bson.Raw(v.Value)
		return p.advance(stageProject, name)
	case "$count":
		if text := string(value.StringBytes(v)); text == "" || text[0] == '$' || bytes.ContainsAny([]byte(text), ".\x00") {
			return mongoerr.Code(40156).Errorf("the count field must be a non-empty string, without '.' and without '$' at its start")
		}
		p.countName, p.countType = string(value.StringBytes(v)), bson.TypeInt32
		return p.advance(stageCount, name)
	case "$group":
		if !p.group(v) {
			return mongoerr.NotImplemented.Errorf("A $group of more than a count of all is not implemented yet")
		}
		return p.advance(stageCount, name)
	}
	if name == "" || name[0] != '$' {
		return mongoerr.LocationPipelineStageUnknown.Errorf("Unrecognized pipeline stage name: '%s'", name)
	}
	return mongoerr.NotImplemented.Errorf("The pipeline stage %s is not implemented yet", name)
}

// advance keeps the stages in the order that a find has them.
func (p *pipeline) advance(stage int, name string) error {
	if stage < p.at || stage == p.at && stage != stageMatch {
		return mongoerr.NotImplemented.Errorf("The pipeline stage %s at this place is not implemented yet", name)
	}
	p.at = stage
	return nil
}

// filter is all $match stages in one.
func (p *pipeline) filter() bson.Raw {
	if len(p.matches) == 1 {
		return p.matches[0]
	}
	return document(func(dst []byte) []byte { return appendDocs(dst, "$and", p.matches) })
}

// plainProjection: every field is kept or left out, and none computed.
func plainProjection(doc []byte) bool {
	n := 0
	for it := value.Elements(doc); it.Next(); n++ {
		switch v := it.Value(); {
		case v.Type == bson.TypeBoolean, value.IsNumber(v.Type):
		case v.Type == bson.TypeEmbeddedDocument && plainProjection(v.Value):
		default:
			return false
		}
		if name := it.Name(); len(name) == 0 || name[0] == '$' || bytes.HasSuffix(name, []byte(".$")) {
			return false
		}
	}
	return n > 0
}

// group recognises {_id: constant, n: {$sum: 1}}.
func (p *pipeline) group(v bson.RawValue) bool {
	if v.Type != bson.TypeEmbeddedDocument || value.Count(v.Value) != 2 {
		return false
	}
	it := value.Elements(v.Value)
	it.Next()
	p.id = it.Value()
	constant := p.id.Type == bson.TypeNull || value.IsNumber(p.id.Type)
	if string(it.Name()) != "_id" || !constant {
		return false
	}
	it.Next()
	p.countName = string(it.Name())
	if sum := it.Value(); sum.Type == bson.TypeEmbeddedDocument && value.Count(sum.Value) == 1 {
		one := value.Lookup(sum.Value, "$sum")
		p.countType = one.Type
		return (one.Type == bson.TypeInt32 || one.Type == bson.TypeInt64) && whole(one) == 1 && p.countName != "" && p.countName[0] != '$'
	}
	return false
}

// count counts, and makes the document of it; there is none if nothing was counted.
func (p *pipeline) count(c *call, ns engine.Namespace) (source, error) {
	n, err := c.db.Count(c.ctx, ns, engine.Count{
		Filter: p.find.Filter, Skip: p.find.Skip, Limit: p.find.Limit, Hint: p.find.Hint, Collation: p.find.Collation,
	})
	docs := new(list)
	if err != nil || n == 0 {
		return docs, err
	}
	*docs = list{document(func(dst []byte) []byte {
		if p.id.Type != 0 {
			dst = appendValue(dst, "_id", p.id)
		}
		if p.countType == bson.TypeInt64 || n > math.MaxInt32 {
			return bsoncore.AppendInt64Element(dst, p.countName, n)
		}
		return bsoncore.AppendInt32Element(dst, p.countName, int32(n))
	})}
	return docs, nil
}
