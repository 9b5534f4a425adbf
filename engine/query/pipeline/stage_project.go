package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/query/project"
	"github.com/multiforadb/multiforadb/engine/value"
)

// projectStage is $project and $unset.
type projectStage struct {
	projection *project.Projection
	raw        bson.Raw
	excludes   []string // the paths left out, if it does nothing else
}

func parseProject(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(15969).Errorf("$project specification must be an object")
	}
	if value.Count(arg.Value) == 0 {
		return nil, code(51272).Errorf("projection specification must have at least one field")
	}
	q, err := p.projection(bson.Raw(arg.Value))
	if err != nil {
		return nil, err
	}
	s := &projectStage{projection: q, raw: bson.Raw(arg.Value)}
	for it := value.Elements(arg.Value); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeEmbeddedDocument || value.Truth(v) {
			s.excludes = nil
			break
		}
		s.excludes = append(s.excludes, string(it.Name()))
	}
	return s, nil
}

func parseUnset(p *parser, arg bson.RawValue) (stage, error) {
	list := []bson.RawValue{arg}
	if arg.Type == bson.TypeArray {
		list = nil
		for it := value.Elements(arg.Value); it.Next(); {
			list = append(list, it.Value())
		}
		if len(list) == 0 {
			return nil, code(31119).Errorf("$unset specification must be a string or an array with at least one field")
		}
	}
	d := newDocument()
	for _, v := range list {
		if v.Type != bson.TypeString {
			if arg.Type == bson.TypeArray {
				return nil, code(31120).Errorf("$unset specification must be a string or an array containing only string values")
			}
			return nil, code(31002).Errorf("$unset specification must be a string or an array")
		}
		d.field(string(value.StringBytes(v)), value.Int32(0))
	}
	return parseProject(p, value.Document(d.raw()))
}

func (s *projectStage) run(in Iterator) Iterator {
	var buf []byte
	return over(in, func() (bson.Raw, error) {
		doc, err := in.Next()
		if err != nil || doc == nil {
			return nil, err
		}
		buf, err = s.projection.Apply(buf[:0], doc)
		return buf, err
	})
}

// rootStage is $replaceRoot and $replaceWith.
type rootStage struct {
	name string
	root computed
}

func parseReplaceRoot(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(40229).Errorf("expected an object as specification for $replaceRoot stage, found %s",
			value.TypeName(arg.Type))
	}
	v, err := fields("$replaceRoot", arg, "newRoot")
	if err != nil {
		return nil, err
	}
	if v[0].Type == 0 {
		return nil, code(40231).Errorf("no newRoot specified for the $replaceRoot stage")
	}
	e, err := p.expression(v[0])
	return &rootStage{"$replaceRoot", computed{e, p.opts.Context}}, err
}

func parseReplaceWith(p *parser, arg bson.RawValue) (stage, error) {
	e, err := p.expression(arg)
	return &rootStage{"$replaceWith", computed{e, p.opts.Context}}, err
}

func (s *rootStage) run(in Iterator) Iterator {
	return over(in, func() (bson.Raw, error) {
		doc, err := in.Next()
		if err != nil || doc == nil {
			return nil, err
		}
		v, err := s.root.Eval(doc)
		if err != nil {
			return nil, err
		}
		if v.Type != bson.TypeEmbeddedDocument {
			return nil, code(40228).Errorf("'newRoot' expression must evaluate to an object, but resulting value was: %s. Type of resulting value: '%s'. Input document: %s",
				value.Brief(v, 200), value.TypeName(v.Type), value.Brief(value.Document(doc), 200))
		}
		return bson.Raw(v.Value), nil
	})
}
