package query

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

const (
	codeNeedsHint    mongoerr.Code = 51173
	codeIncompatible mongoerr.Code = 51174
	codeNotBefore    mongoerr.Code = 51175
)

// between plans min and max: a scan of the hinted index from one key to the other. The filter bounds nothing then.
func (pl *planner) between(p *Plan, x *Index) error {
	s := scan{kind: scanIndex, index: x, sets: make([]set, len(x.Fields))}
	for i := range s.sets {
		s.sets[i] = setAll
	}
	var err error
	if s.bounds.low, err = x.boundary("min", p.Min); err != nil {
		return err
	}
	if s.bounds.high, err = x.boundary("max", p.Max); err != nil {
		return err
	}
	if p.Min != nil && p.Max != nil && bytes.Compare(s.bounds.low, s.bounds.high) >= 0 {
		return codeNotBefore.Errorf("The value provided for min() does not come before the value provided for max() in the hinted index")
	}
	p.scan = s
	p.sorted, p.scan.reverse = pl.order(x, s.sets)
	return nil
}

// boundary is the key that min or max tells, with a value for each field of the index.
func (x *Index) boundary(what string, doc bson.Raw) ([]byte, error) {
	if doc == nil {
		return nil, nil
	}
	var p key.Pattern
	if x.Collation != nil {
		p.Collation = x.Collation
	}
	out := []byte{}
	for it := value.Elements(doc); it.Next(); {
		i := len(p.Fields)
		if x.Wild != nil || i == len(x.Fields) || x.Fields[i].Path != string(it.Name()) {
			return nil, codeIncompatible.Errorf("The index chosen is not compatible with %s(): %s, and its key is %s", what, value.Brief(value.Document(doc), 200), value.Brief(value.Document(x.Key), 200))
		}
		p.Fields = append(p.Fields, key.Field{Kind: x.Fields[i].Kind})
		out = p.AppendField(out, i, it.Value())
	}
	if len(p.Fields) < len(x.Fields) {
		return nil, codeIncompatible.Errorf("The index chosen is not compatible with %s(): %s, and its key is %s", what, value.Brief(value.Document(doc), 200), value.Brief(value.Document(x.Key), 200))
	}
	return out, nil
}
