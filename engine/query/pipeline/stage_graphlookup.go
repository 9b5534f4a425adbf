package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// graphStage is $graphLookup: the documents of another collection that can be reached from a document, going from the value of one
// field to all documents that have it in another; breadth first, each document once.
type graphStage struct {
	*parser
	pipe     *subPipe
	start    computed
	connect  value.Path // where a document leads to
	to       string     // where the values that it leads to are
	as       []string
	maxDepth int64
	depth    []string // nil: the depth is not told
	restrict bson.Raw
}

func parseGraphLookup(p *parser, arg bson.RawValue) (stage, error) {
	v, err := fields("$graphLookup", arg, "from", "startWith", "connectFromField", "connectToField", "as", "maxDepth", "depthField", "restrictSearchWithMatch")
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"from", "startWith", "connectFromField", "connectToField", "as"} {
		if v[i].Type == 0 {
			return nil, code(40105).Errorf("$graphLookup requires '%s' to be specified", name)
		}
	}
	s := &graphStage{parser: p, maxDepth: -1}
	ns, err := p.from("$graphLookup", v[0])
	if err != nil {
		return nil, err
	}
	if s.pipe, err = p.other(ns, p.scope, nil); err != nil {
		return nil, err
	}
	s.start.c = p.opts.Context
	if s.start.Expr, err = p.expression(v[1]); err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for i, name := range []string{"connectFromField", "connectToField", "as", "", "depthField"} {
		if name == "" || v[2+i].Type == 0 {
			continue
		}
		if v[2+i].Type != bson.TypeString {
			return nil, code(40103).Errorf("expected string as argument for %s, found: %s", name, value.Brief(v[2+i], 100))
		}
		paths[name] = string(value.StringBytes(v[2+i]))
		if _, err := fieldPath(paths[name]); err != nil {
			return nil, err
		}
	}
	s.connect, s.to = value.ParsePath(paths["connectFromField"]), paths["connectToField"]
	if s.as, err = fieldPath(paths["as"]); err != nil {
		return nil, err
	}
	if d := paths["depthField"]; d != "" {
		if s.depth, err = fieldPath(d); err != nil {
			return nil, err
		}
	}
	if v[5].Type != 0 {
		n, ok := whole(v[5])
		if !value.IsNumber(v[5].Type) {
			return nil, code(40100).Errorf("maxDepth requires numeric argument, found type: %s", value.TypeName(v[5].Type))
		}
		if !ok {
			return nil, code(40102).Errorf("maxDepth could not be represented as a long long: %s", value.Brief(v[5], 100))
		}
		if n < 0 {
			return nil, code(40101).Errorf("maxDepth requires a nonnegative argument, found: %d", n)
		}
		s.maxDepth = n
	}
	if v[7].Type != 0 {
		if v[7].Type != bson.TypeEmbeddedDocument {
			return nil, code(40185).Errorf("restrictSearchWithMatch must be an object, found %s", value.TypeName(v[7].Type))
		}
		s.restrict = bson.Raw(v[7].Value)
		_, err = p.filter(s.restrict)
	}
	return s, err
}

func (s *graphStage) run(in Iterator) Iterator {
	var buf []byte
	return over(in, func() (bson.Raw, error) {
		doc, err := in.Next()
		if err != nil || doc == nil {
			return nil, err
		}
		list, err := s.search(doc)
		if err != nil {
			return nil, err
		}
		buf = setPath(buf[:0], doc, s.as, value.Array(list.raw()))
		return buf, checkSize("$graphLookup", len(buf))
	})
}

func (s *graphStage) search(doc bson.Raw) (*builder, error) {
	list := newDocument()
	v, err := s.start.Eval(doc)
	if err != nil {
		return nil, err
	}
	budget := s.budget("$graphLookup")
	asked, seen := newGroups(s.opts), newGroups(s.opts)
	var frontier []bson.RawValue
	want := func(v bson.RawValue) error {
		if value.IsNullish(v) {
			v = value.Null
		}
		g, born := asked.find(v)
		if !born {
			return nil
		}
		frontier = append(frontier, asked.keys[g])
		return budget.take(len(v.Value) + groupSize)
	}
	if v.Type == bson.TypeArray {
		for it := value.Elements(v.Value); it.Next() && err == nil; {
			err = want(it.Value())
		}
	} else {
		err = want(v)
	}
	for depth := int64(0); err == nil && len(frontier) > 0 && (s.maxDepth < 0 || depth <= s.maxDepth); depth++ {
		test := equalsOneOf(s.to, frontier)
		if s.restrict != nil {
			d := newDocument()
			d.field("$and", arrayOf([]bson.RawValue{value.Document(test), value.Document(s.restrict)}))
			test = d.raw()
		}
		frontier = nil
		var it Iterator
		if it, err = s.pipe.start(test); err != nil {
			break
		}
		err = each(it, func(doc bson.Raw) error {
			if _, born := seen.find(value.Lookup(doc, "_id")); !born {
				return nil
			}
			if err := budget.take(len(doc) + groupSize); err != nil {
				return err
			}
			found := doc
			if s.depth != nil {
				found = setPath(nil, doc, s.depth, value.Int64(depth))
			}
			list.add(value.Document(found))
			var err error
			value.Walk(doc, s.connect, value.LeafArray, func(v bson.RawValue, _ int) bool {
				if v.Type != bson.TypeArray {
					if v.Type != 0 {
						err = want(v)
					}
					return err != nil
				}
				for it := value.Elements(v.Value); it.Next() && err == nil; {
					err = want(it.Value())
				}
				return err != nil
			})
			return err
		})
		if e := it.Close(); err == nil {
			err = e
		}
	}
	if budget.used > budget.limit {
		err = code(40099).Errorf("$graphLookup reached maximum memory consumption")
	}
	return list, err
}
