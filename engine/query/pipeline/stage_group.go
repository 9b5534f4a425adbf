package pipeline

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// groupStage is $group.
type groupStage struct{ grouping }

func parseGroup(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(15947).Errorf("a group's fields must be specified in an object")
	}
	s := &groupStage{grouping{who: "$group", opts: p.opts}}
	for it := value.Elements(arg.Value); it.Next(); {
		name, v := string(it.Name()), it.Value()
		var err error
		switch {
		case name == "$doingMerge":
			return nil, code(17030).Errorf("$doingMerge is not for users")
		case name == "_id":
			if s.id != nil {
				return nil, code(15948).Errorf("a group's _id may only be specified once")
			}
			if s.id, err = p.expression(v); err != nil {
				return nil, err
			}
			continue
		case strings.IndexByte(name, '.') >= 0:
			return nil, code(40235).Errorf("the field name '%s' cannot contain '.'", name)
		case strings.HasPrefix(name, "$"):
			return nil, code(40236).Errorf("the field name '%s' cannot be an operator name", name)
		}
		a, err := p.accumulation(name, v)
		if err != nil {
			return nil, err
		}
		s.names, s.accs = append(s.names, name), append(s.accs, a)
	}
	if s.id == nil {
		return nil, code(15955).Errorf("a group specification must include an _id")
	}
	return s, nil
}
