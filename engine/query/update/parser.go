package update

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// parser builds the tree of an update. It carries the table of operators, so that operators may refer to the parser.
type parser struct {
	opts      Options
	operators []operator
	update    *Update
	filters   []*arrayFilter
}

// arrayFilter is a condition with its identifier.
type arrayFilter struct {
	id   string
	test Test
	used bool
}

func (p *parser) filter(id string) *arrayFilter {
	for _, f := range p.filters {
		if f.id == id {
			return f
		}
	}
	return nil
}

func (p *parser) parse(u bson.Raw) error {
	for _, f := range p.opts.ArrayFilters {
		if err := p.arrayFilter(f); err != nil {
			return err
		}
	}
	p.update.root = &node{}
	for it := value.Elements(u); it.Next(); {
		op := p.operator(string(it.Name()))
		switch {
		case op == nil:
			return mongoerr.FailedToParse.Errorf("Unknown modifier: %s. Expected a valid update modifier or pipeline-style update specified as an array", it.Name())
		case it.Value().Type != bson.TypeEmbeddedDocument:
			return mongoerr.FailedToParse.Errorf("Modifiers operate on fields but we found type %s instead. For example: {$mod: {<field>: ...}} not {%s: %s}",
				value.TypeName(it.Value().Type), op.name, value.Brief(it.Value(), 200))
		}
		for fields := value.Elements(it.Value().Value); fields.Next(); {
			path, arg := string(fields.Name()), fields.Value()
			if err := checkPath(path); err != nil {
				return err
			}
			mod, err := op.parse(p, path, arg)
			if err != nil {
				return err
			}
			if err := p.put(path, mod); err != nil {
				return err
			}
			if levels := strings.Count(path, ".") + 1 + depth(arg); levels > value.DepthMax {
				return mongoerr.Overflow.Errorf("%s of '%s' would nest the document deeper than %d levels", op.name, path, value.DepthMax)
			}
		}
	}
	p.update.root.sort()
	for _, f := range p.filters {
		if !f.used {
			return mongoerr.FailedToParse.Errorf("The array filter for identifier '%s' was not used in the update %s", f.id,
				value.Brief(value.Document(u), 200))
		}
	}
	return nil
}

// depth is how many levels of documents and arrays v has.
func depth(v bson.RawValue) int {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return 0
	}
	deepest := 0
	for it := value.Elements(v.Value); it.Next(); {
		deepest = max(deepest, depth(it.Value()))
	}
	return deepest + 1
}

func (p *parser) operator(name string) *operator {
	for i := range p.operators {
		if p.operators[i].name == name {
			return &p.operators[i]
		}
	}
	return nil
}

// compile makes a test of a filter.
func (p *parser) compile(filter bson.Raw) (Test, error) {
	if p.opts.Filter == nil {
		return nil, mongoerr.NotImplemented.Errorf("conditions on array elements are not implemented here")
	}
	return p.opts.Filter(filter)
}

func (p *parser) arrayFilter(filter bson.Raw) error {
	if err := value.Validate(filter); err != nil {
		return err
	}
	id, err := identifier(filter, "")
	if err != nil {
		return err
	}
	switch {
	case id == "":
		return mongoerr.FailedToParse.Errorf("Cannot use an expression without a top-level field name in arrayFilters")
	case !isIdentifier(id):
		return mongoerr.BadValue.Errorf("Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning with a "+
			"lowercase letter, found '%s'", id)
	case p.filter(id) != nil:
		return mongoerr.FailedToParse.Errorf("Found multiple array filters with the same top-level field name %s", id)
	}
	test, err := p.compile(filter)
	if err != nil {
		return mongoerr.From(err).Code.Errorf("Error parsing array filter :: caused by :: %s", mongoerr.From(err).Message)
	}
	p.filters = append(p.filters, &arrayFilter{id: id, test: test})
	return nil
}

// identifier is the one first part of all paths of a filter, or "" if it has no path. found is what was seen before.
func identifier(filter bson.Raw, found string) (string, error) {
	for it := value.Elements(filter); it.Next(); {
		name, v := string(it.Name()), it.Value()
		switch {
		case (name == "$and" || name == "$or" || name == "$nor") && v.Type == bson.TypeArray:
			for clauses := value.Elements(v.Value); clauses.Next(); {
				var err error
				if found, err = identifier(clauses.Value().Value, found); err != nil {
					return "", err
				}
			}
		case strings.HasPrefix(name, "$"): // the filter's own parser judges it
		default:
			name, _, _ = strings.Cut(name, ".")
			if found != "" && found != name {
				return "", mongoerr.FailedToParse.Errorf("Error parsing array filter :: caused by :: Expected a single top-level field name, found '%s' and '%s'", found, name)
			}
			found = name
		}
	}
	return found, nil
}

func isIdentifier(s string) bool {
	for i, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z':
		case i > 0 && ('A' <= c && c <= 'Z' || '0' <= c && c <= '9'):
		default:
			return false
		}
	}
	return s != ""
}
