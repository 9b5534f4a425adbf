package update

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// A $rename is two leaves. This one is at the new place and takes the value from the document as it was: nothing else may
// touch the old place, which has the other leaf, an unset.
type rename struct{ from, to value.Path }

func parseRename(p *parser, path string, arg bson.RawValue) (modifier, error) {
	if arg.Type != bson.TypeString {
		return nil, mongoerr.BadValue.Errorf("The 'to' field for $rename must be a string: %s: %s", path, value.Brief(arg, 200))
	}
	to := string(value.StringBytes(arg))
	if err := checkPath(to); err != nil {
		return nil, err
	}
	switch {
	case isDynamic(path):
		return nil, mongoerr.BadValue.Errorf("The source field for $rename may not be dynamic: %s", path)
	case isDynamic(to):
		return nil, mongoerr.BadValue.Errorf("The destination field for $rename may not be dynamic: %s", to)
	case path == to:
		return nil, mongoerr.BadValue.Errorf("The source and target field for $rename must differ: %s: \"%s\"", path, to)
	}
	m := rename{from: value.ParsePath(path), to: value.ParsePath(to)}
	if m.from.HasPrefix(m.to) || m.to.HasPrefix(m.from) {
		return nil, mongoerr.BadValue.Errorf("The source and target field for $rename must not be on the same path: %s: \"%s\"", path, to)
	}
	p.update.deepens = p.update.deepens || m.to.Len() > m.from.Len()
	return unset{}, p.put(to, m)
}

func (m rename) modify(c *context, _ string, old bson.RawValue) (bson.RawValue, error) {
	v := value.Get(c.root, m.from)
	if err := c.noArray(m.from, "source"); err != nil {
		return value.Missing, err
	}
	if v.Type == 0 {
		return old, nil
	}
	return v, c.noArray(m.to, "destination")
}

// noArray is an error if the path leads through an array of the document.
func (c *context) noArray(path value.Path, which string) error {
	v := value.Document(c.root)
	for i, part := range path.Parts() {
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			v = value.Lookup(v.Value, part.Name)
		case bson.TypeArray:
			return mongoerr.BadValue.Errorf("The %s field cannot be an array element, '%s' in doc with _id: %s has an array field called '%s'", which,
				path, value.Brief(value.Lookup(c.root, "_id"), 200), path.Part(i-1).Name)
		default:
			return nil
		}
	}
	return nil
}
