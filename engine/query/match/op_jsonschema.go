package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

func parseJSONSchema(p *parser, arg bson.RawValue) (Node, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, mongoerr.TypeMismatch.Errorf("$jsonSchema must be an object")
	}
	s, err := p.schema(arg.Value, "")
	if err != nil {
		return nil, err
	}
	return &Schema{Value: arg.Value, schema: s}, nil
}

func (e *eval) schema(n *Schema) bool {
	if e.err != nil {
		return false
	}
	j := judge{}
	ok := j.valid(n.schema, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: e.doc})
	e.err = j.err
	return ok
}
