package pipeline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// outStage makes the documents the content of a collection. It gives none itself.
type outStage struct {
	ns   Namespace
	sink Sink
}

func (p *parser) into(stage string, v bson.RawValue) (Namespace, error) {
	ns := Namespace{DB: p.opts.Namespace.DB}
	switch v.Type {
	case bson.TypeString:
		ns.Collection = string(value.StringBytes(v))
	case bson.TypeEmbeddedDocument:
		parts, err := fields(stage, v, "db", "coll")
		if err != nil {
			return ns, err
		}
		if parts[0].Type != 0 {
			if ns.DB, err = text(stage, "db", parts[0]); err != nil {
				return ns, err
			}
		}
		if ns.Collection, err = text(stage, "coll", parts[1]); err != nil {
			return ns, err
		}
	default:
		return ns, code(51178).Errorf("%s's target must be a string or an object, but found %s", stage, value.TypeName(v.Type))
	}
	if ns.Collection == "" || ns.DB == "" {
		return ns, mongoerr.InvalidNamespace.Errorf("%s's target namespace is invalid: '%s'", stage, ns)
	}
	if p.opts.Sink == nil {
		return ns, mongoerr.NotImplemented.Errorf("%s cannot write here", stage)
	}
	return ns, nil
}

func parseOut(p *parser, arg bson.RawValue) (stage, error) {
	if arg.Type != bson.TypeString && arg.Type != bson.TypeEmbeddedDocument {
		return nil, code(16990).Errorf("$out only supports a string or object argument, but found %s", value.TypeName(arg.Type))
	}
	if value.Lookup(arg.Value, "timeseries").Type != 0 && arg.Type == bson.TypeEmbeddedDocument {
		return nil, mongoerr.NotImplemented.Errorf("$out to a time-series collection is not implemented")
	}
	ns, err := p.into("$out", arg)
	return &outStage{ns, p.opts.Sink}, err
}

func (s *outStage) target() Namespace { return s.ns }

func (s *outStage) run(in Iterator) Iterator {
	return over(in, func() (bson.Raw, error) { return nil, s.sink.Out(s.ns, unclosed{in}) })
}

// unclosed is an iterator that somebody else closes.
type unclosed struct{ in Iterator }

func (u unclosed) Next() (bson.Raw, error) { return u.in.Next() }
func (u unclosed) Close() error            { return nil }

// mergeStage writes each document into a collection. It gives none itself.
type mergeStage struct {
	ns      Namespace
	sink    Sink
	on      []string
	matched string // replace, keepExisting, merge, fail, pipeline
	missing string // insert, discard, fail
	pipe    *Pipeline
	vars    []computed
	slots   []int
	newSlot int
	c       *expr.Context
}

func parseMerge(p *parser, arg bson.RawValue) (stage, error) {
	s := &mergeStage{sink: p.opts.Sink, matched: "merge", missing: "insert", on: []string{"_id"}, c: p.opts.Context}
	v := []bson.RawValue{arg, {}, {}, {}, {}}
	var err error
	if arg.Type == bson.TypeEmbeddedDocument {
		if v, err = fields("$merge", arg, "into", "on", "whenMatched", "whenNotMatched", "let"); err != nil {
			return nil, err
		}
		if v[0].Type == 0 {
			return nil, missing("$merge", "into")
		}
	} else if arg.Type != bson.TypeString {
		return nil, code(51182).Errorf("$merge only supports a string or object argument, not %s", value.TypeName(arg.Type))
	}
	if s.ns, err = p.into("$merge", v[0]); err != nil {
		return nil, err
	}
	if err := s.readOn(v[1]); err != nil {
		return nil, err
	}
	if v[3].Type != 0 {
		if s.missing, err = text("$merge", "whenNotMatched", v[3]); err != nil {
			return nil, err
		}
		if !slices.Contains([]string{"insert", "discard", "fail"}, s.missing) {
			return nil, mongoerr.BadValue.Errorf("enumeration value '%s' for field 'whenNotMatched' is not a valid value",
				s.missing)
		}
	}
	switch {
	case v[2].Type == bson.TypeArray:
		s.matched = "pipeline"
		err = s.readPipeline(p, v[2], v[4])
	case v[4].Type != 0:
		err = code(51199).Errorf("cannot use 'let' variables with 'whenMatched: %s' mode", s.matched)
	case v[2].Type != 0:
		if s.matched, err = text("$merge", "whenMatched", v[2]); err == nil && !slices.Contains([]string{"replace", "keepExisting", "merge", "fail"}, s.matched) {
			err = mongoerr.BadValue.Errorf("enumeration value '%s' for field 'whenMatched' is not a valid value", s.matched)
		}
	}
	return s, err
}

func (s *mergeStage) readOn(v bson.RawValue) error {
	switch v.Type {
	case 0:
	case bson.TypeString:
		s.on = []string{string(value.StringBytes(v))}
	case bson.TypeArray:
		s.on = nil
		for it := value.Elements(v.Value); it.Next(); {
			if it.Value().Type != bson.TypeString {
				return code(51134).Errorf("$merge 'on' array elements must be strings, but found %s",
					value.TypeName(it.Value().Type))
			}
			s.on = append(s.on, string(value.StringBytes(it.Value())))
		}
		if s.on == nil {
			return code(51187).Errorf("if explicitly specifying $merge 'on', must include at least one field")
		}
	default:
		return code(51186).Errorf("$merge 'on' field must be either a string or an array of strings, but found %s",
			value.TypeName(v.Type))
	}
	return s.sink.CheckMerge(s.ns, s.on)
}

// readPipeline reads the pipeline that makes the new document of the old one; it sees the incoming one as $$new.
func (s *mergeStage) readPipeline(p *parser, stages, vars bson.RawValue) error {
	scope := p.scope
	if vars.Type != 0 {
		if vars.Type != bson.TypeEmbeddedDocument {
			return mongoerr.TypeMismatch.Errorf("$merge 'let' must be an object, but found %s", value.TypeName(vars.Type))
		}
		l := lookupStage{parser: p}
		var err error
		if scope, err = l.bind(vars); err != nil {
			return err
		}
		s.vars, s.slots = l.vars, l.slots
	}
	hasNew := vars.Type != 0 && value.Lookup(vars.Value, "new").Type != 0
	if scope, s.newSlot = scope.Bind("new"); hasNew {
		v := value.Lookup(vars.Value, "new")
		if string(value.StringBytes(v)) != "$$ROOT" {
			return code(51273).Errorf("'let' may not define a value for the reserved 'new' variable other than '$$ROOT'")
		}
	}
	list, err := Split(stages)
	if err != nil {
		return err
	}
	s.pipe, err = p.sub(inUpdate, s.ns, scope).pipeline(list)
	return err
}

func (s *mergeStage) target() Namespace { return s.ns }

func (s *mergeStage) run(in Iterator) Iterator {
	return over(in, func() (bson.Raw, error) {
		return nil, each(in, func(doc bson.Raw) error {
			for _, name := range s.on {
				v := getPath(doc, strings.Split(name, "."))
				if name != "_id" && (value.IsNullish(v) || v.Type == bson.TypeArray) {
					return code(51132).Errorf("$merge write error: 'on' field '%s' cannot be missing, null, undefined or an array",
						name)
				}
			}
			return s.sink.Merge(s.ns, s.on, doc, func(old bson.Raw) (bson.Raw, error) { return s.merge(old, doc) })
		})
	})
}

// duplicate is the error of a document that must not be there already.
func (s *mergeStage) duplicate(doc bson.Raw) error {
	pattern, values := bson.D{}, bson.D{}
	for _, name := range s.on {
		pattern = append(pattern, bson.E{Key: name, Value: int32(1)})
		values = append(values, bson.E{Key: name, Value: getPath(doc, strings.Split(name, "."))})
	}
	return mongoerr.DuplicateKey.New("E11000 duplicate key error collection: %s: $merge found a document that is there already", s.ns).
		With("keyPattern", pattern).With("keyValue", values)
}

// merge is what becomes of the old document.
func (s *mergeStage) merge(old, doc bson.Raw) (bson.Raw, error) {
	if old == nil {
		switch s.missing {
		case "fail":
			return nil, code(13113).Errorf("$merge could not find a matching document in the target collection for at least one document in the source collection")
		case "discard":
			return nil, nil
		}
		return doc, nil
	}
	switch s.matched {
	case "keepExisting":
		return nil, nil
	case "fail":
		return nil, s.duplicate(doc)
	case "replace":
		if id := value.Lookup(doc, "_id"); id.Type == 0 {
			return setPath(nil, doc, []string{"_id"}, value.Lookup(old, "_id")), nil
		}
		return doc, nil
	case "merge":
		var m expr.Merger
		if err := m.Add(value.Document(old)); err != nil {
			return nil, err
		}
		if err := m.Add(value.Document(doc)); err != nil {
			return nil, err
		}
		v, err := m.Value()
		return bson.Raw(v.Value), err
	}
	if err := setVariables(s.c, s.slots, s.vars, doc); err != nil {
		return nil, err
	}
	s.c.Set(s.newSlot, value.Document(doc))
	it := s.pipe.RunAll(Documents([]bson.Raw{old}))
	made, err := it.Next()
	if err != nil {
		return nil, err
	}
	return copyOf(made), it.Close()
}
