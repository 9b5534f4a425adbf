package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/query/expr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// redactStage keeps a document, drops it, or goes on to the documents in it, as an expression says of each.
type redactStage struct {
	e     *expr.Expr
	c     *expr.Context
	slots []int // of the variables redactions
}

// redactions are what the expression answers with. Other stages use their slots, so they are set anew for each document.
var redactions = []string{"DESCEND", "PRUNE", "KEEP"}

func parseRedact(p *parser, arg bson.RawValue) (stage, error) {
	scope := p.scope
	s := &redactStage{c: p.opts.Context}
	for _, name := range redactions {
		var slot int
		scope, slot = scope.Bind(name)
		s.slots = append(s.slots, slot)
	}
	var err error
	s.e, err = expr.Parse(arg, scope)
	return s, err
}

func (s *redactStage) run(in Iterator) Iterator {
	var buf []byte
	values := make([]bson.RawValue, len(redactions))
	for i, name := range redactions {
		values[i] = value.String(name)
	}
	return over(in, func() (bson.Raw, error) {
		for {
			doc, err := in.Next()
			if err != nil || doc == nil {
				return nil, err
			}
			s.c.SetAll(s.slots, values)
			var kept bool
			if buf, kept, err = s.document(buf[:0], doc, doc); err != nil {
				return nil, err
			}
			if kept {
				return buf, nil
			}
		}
	})
}

// document appends what is left of doc, if anything is.
func (s *redactStage) document(dst []byte, root, doc bson.Raw) ([]byte, bool, error) {
	v, err := s.e.EvalAt(s.c, root, doc)
	if err != nil {
		return dst, false, err
	}
	switch string(value.StringBytes(v)) {
	case "KEEP":
		return append(dst, doc...), true, nil
	case "PRUNE":
		return dst, false, nil
	case "DESCEND":
		dst, err = s.elements(dst, root, doc)
		return dst, true, err
	}
	return dst, false, code(17053).Errorf("$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned %s",
		value.Brief(v, 100))
}

// elements appends a document or an array with each document in it redacted.
func (s *redactStage) elements(dst []byte, root bson.Raw, b []byte) ([]byte, error) {
	at, dst := bsoncore.ReserveLength(dst)
	for it := value.Elements(b); it.Next(); {
		v := it.Value()
		mark := len(dst)
		dst = append(append(append(dst, byte(v.Type)), it.Name()...), 0)
		kept := true
		var err error
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			dst, kept, err = s.document(dst, root, bson.Raw(v.Value))
		case bson.TypeArray:
			dst, err = s.array(dst, root, v.Value)
		default:
			dst = append(dst, v.Value...)
		}
		if err != nil {
			return dst, err
		}
		if !kept {
			dst = dst[:mark]
		}
	}
	dst = append(dst, 0)
	return bsoncore.UpdateLength(dst, at, int32(len(dst))-at), nil
}

func (s *redactStage) array(dst []byte, root bson.Raw, b []byte) ([]byte, error) {
	list := newDocument()
	for it := value.Elements(b); it.Next(); {
		v := it.Value()
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			d, kept, err := s.document(nil, root, bson.Raw(v.Value))
			if err != nil {
				return dst, err
			}
			if !kept {
				continue
			}
			v = value.Document(d)
		case bson.TypeArray:
			d, err := s.array(nil, root, v.Value)
			if err != nil {
				return dst, err
			}
			v = value.Array(d)
		}
		list.add(v)
	}
	return append(dst, list.raw()...), nil
}
