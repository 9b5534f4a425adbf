package expr

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/value"
)

func callMergeObjects(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	var m Merger
	if len(args) == 1 && isArray(args[0]) {
		args = elements(args[0])
	}
	for _, v := range args {
		if err := m.Add(v); err != nil {
			return value.Missing, err
		}
	}
	return m.Value()
}

// Merger puts documents over each other: a field keeps the place where it came first and has the value that came last.
type Merger struct {
	names  []string
	values []bson.RawValue
	at     map[string]int
	size   int
}

// Add merges one more document; null and missing are none. Its bytes must live until Value.
func (m *Merger) Add(v bson.RawValue) error {
	switch {
	case nullish(v):
		return nil
	case !isDocument(v):
		return code(40400).Errorf("$mergeObjects requires object inputs, but input %s is of type %s",
			value.Brief(v, 100), typeName(v))
	}
	if m.at == nil {
		m.at = map[string]int{}
	}
	for it := value.Elements(v.Value); it.Next(); {
		i, ok := m.at[string(it.Name())]
		if ok {
			m.size -= len(m.values[i].Value)
			m.values[i] = it.Value()
		} else {
			name := string(it.Name())
			m.at[name] = len(m.names)
			m.names, m.values = append(m.names, name), append(m.values, it.Value())
			m.size += len(name) + 2
		}
		m.size += len(it.Value().Value)
	}
	return nil
}

// Size is about how many bytes the merged document has.
func (m *Merger) Size() int { return m.size }

// Save appends the fields that were merged, as a document; Load takes them. b must live until Value.
func (m *Merger) Save(dst []byte) []byte {
	at, dst := bsoncore.ReserveLength(dst)
	for i, name := range m.names {
		dst = append(append(append(dst, byte(m.values[i].Type)), name...), 0)
		dst = append(dst, m.values[i].Value...)
	}
	dst = append(dst, 0)
	return bsoncore.UpdateLength(dst, at, int32(len(dst))-at)
}

func (m *Merger) Load(b []byte) {
	if len(b) > 0 {
		m.Add(value.Document(b)) // a document is no error
	}
}

// Value is the merged document.
func (m *Merger) Value() (bson.RawValue, error) {
	b := newDocument()
	for i, name := range m.names {
		b.field(name, m.values[i])
	}
	return b.done()
}

func callObjectToArray(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	v := args[0]
	switch {
	case nullish(v):
		return value.Null, nil
	case !isDocument(v):
		return value.Missing, code(40390).Errorf("$objectToArray requires a document input, found: %s", typeName(v))
	}
	b := newArray()
	for it := value.Elements(v.Value); it.Next(); {
		pair := newDocument()
		pair.field("k", value.String(string(it.Name())))
		pair.field("v", it.Value())
		e, err := pair.done()
		if err != nil {
			return e, err
		}
		b.add(e)
	}
	return b.done()
}

func callArrayToObject(_ *Context, args []bson.RawValue) (bson.RawValue, error) {
	v := args[0]
	switch {
	case nullish(v):
		return value.Null, nil
	case !isArray(v):
		return value.Missing, code(40386).Errorf("$arrayToObject requires an array input, found: %s", typeName(v))
	}
	var m Merger
	pairs := 0 // 1: [k, v], 2: {k, v}
	for _, e := range elements(v) {
		var k, val bson.RawValue
		switch {
		case isArray(e) && pairs != 2:
			pairs = 1
			if value.Count(e.Value) != 2 {
				return value.Missing, code(40397).Errorf("$arrayToObject requires an array of size 2 arrays, found array of size: %d",
					value.Count(e.Value))
			}
			if k, val = value.At(e.Value, 0), value.At(e.Value, 1); !isString(k) {
				return value.Missing, code(40395).Errorf("$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: %s",
					typeName(k))
			}
		case isDocument(e) && pairs != 1:
			pairs = 2
			if value.Count(e.Value) != 2 {
				return value.Missing, code(40392).Errorf("$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys: %d",
					value.Count(e.Value))
			}
			if k, val = value.Lookup(e.Value, "k"), value.Lookup(e.Value, "v"); k.Type == 0 || val.Type == 0 {
				return value.Missing, code(40393).Errorf("$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: %s",
					value.Brief(e, 100))
			}
			if !isString(k) {
				return value.Missing, code(40394).Errorf("$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: %s",
					typeName(k))
			}
		case pairs == 1:
			return value.Missing, code(40396).Errorf("$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Array was detected, now found: %s",
				typeName(e))
		case pairs == 2:
			return value.Missing, code(40391).Errorf("$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Object was detected, now found: %s",
				typeName(e))
		default:
			return value.Missing, code(40398).Errorf("unrecognised input type format for $arrayToObject: %s", typeName(e))
		}
		name := text(k)
		for i := range len(name) {
			if name[i] == 0 {
				return value.Missing, code(4940400).Errorf("key field cannot contain an embedded null byte")
			}
		}
		one := newDocument()
		one.field(name, val)
		d, err := one.done()
		if err != nil {
			return d, err
		}
		if err := m.Add(d); err != nil {
			return d, err
		}
	}
	return m.Value()
}

// getField is $getField: a field whose name may be anything, dots and dollars included, and is not a path.
type getField struct {
	name  string
	input node // nil: $$CURRENT
}

func (n *getField) eval(c *Context) (bson.RawValue, error) {
	v := c.current
	if n.input != nil {
		var err error
		if v, err = n.input.eval(c); err != nil {
			return v, err
		}
	}
	switch {
	case v.Type == bson.TypeNull || v.Type == bson.TypeUndefined:
		return value.Null, nil
	case !isDocument(v):
		return value.Missing, nil
	}
	return value.Lookup(v.Value, n.name), nil
}

func parseGetField(p *parser, arg bson.RawValue) (node, error) {
	name, input := arg, bson.RawValue{}
	if arg.Type == bson.TypeEmbeddedDocument && !startsWithDollar(arg) {
		raw, err := p.fields("$getField", arg, 3041701, 3041701, 3041702, []string{"field", "input"}, nil)
		if err != nil {
			return nil, err
		}
		name, input = raw[0], raw[1]
	}
	s, err := p.constantName("$getField", name, 5654601, 5654602)
	if err != nil {
		return nil, err
	}
	n := &getField{name: s}
	if input.Type == 0 {
		p.currentPath([]string{s})
		p.all = true // the name need not be a path
		return n, nil
	}
	n.input, err = p.parse(input)
	return n, err
}

func startsWithDollar(v bson.RawValue) bool {
	it := value.Elements(v.Value)
	return it.Next() && len(it.Name()) > 0 && it.Name()[0] == '$'
}

// constantName is the name of a field: an expression that is a constant string.
func (p *parser) constantName(op string, v bson.RawValue, notConstant, notString code) (string, error) {
	n, err := p.parse(v)
	if err != nil {
		return "", err
	}
	l, ok := n.(literal)
	switch {
	case !ok:
		return "", notConstant.Errorf("%s requires 'field' to evaluate to a constant", op)
	case !isString(l.v):
		return "", notString.Errorf("%s requires 'field' to evaluate to type String, but got %s", op, typeName(l.v))
	}
	return text(l.v), nil
}

// setField is $setField and $unsetField.
type setField struct {
	op           string
	name         string
	input, value node // a nil value unsets
}

func (n *setField) eval(c *Context) (bson.RawValue, error) {
	v, err := n.input.eval(c)
	switch {
	case err != nil:
		return v, err
	case nullish(v):
		return value.Null, nil
	case !isDocument(v):
		return v, code(4161105).Errorf("%s requires 'input' to evaluate to type Object, but got %s", n.op, typeName(v))
	}
	var set bson.RawValue
	if n.value != nil {
		if set, err = n.value.eval(c); err != nil {
			return set, err
		}
	}
	b := newDocument()
	found := false
	for it := value.Elements(v.Value); it.Next(); {
		if string(it.Name()) == n.name {
			b.field(n.name, set)
			found = true
			continue
		}
		b.field(string(it.Name()), it.Value())
	}
	if !found {
		b.field(n.name, set)
	}
	return b.done()
}

func parseSetField(p *parser, arg bson.RawValue) (node, error) {
	raw, err := p.fields("$setField", arg, 4161100, 4161101, 4161102, []string{"field", "input", "value"}, nil)
	if err != nil {
		return nil, err
	}
	n, err := p.setField("$setField", raw)
	if err == nil {
		n.value, err = p.parse(raw[2])
	}
	return n, err
}

func parseUnsetField(p *parser, arg bson.RawValue) (node, error) {
	raw, err := p.fields("$unsetField", arg, 4161100, 4161101, 4161102, []string{"field", "input"}, nil)
	if err != nil {
		return nil, err
	}
	return p.setField("$unsetField", raw)
}

func (p *parser) setField(op string, raw []bson.RawValue) (*setField, error) {
	n := &setField{op: op}
	var err error
	if n.name, err = p.constantName(op, raw[0], 4161106, 4161107); err != nil {
		return n, err
	}
	n.input, err = p.parse(raw[1])
	return n, err
}
