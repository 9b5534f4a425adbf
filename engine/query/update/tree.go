package update

import (
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// modifier is what an operator does in one place: the new value from the old one, Missing for none. path is the place as the
// update names it.
type modifier interface {
	modify(c *context, path string, old bson.RawValue) (bson.RawValue, error)
}

// node is a place in documents. It has a modifier, or fields and at most one $, or conditions on array elements.
type node struct {
	path       string // as the update writes it
	mod        modifier
	fields     []field        // sorted, once all are there
	byName     map[string]int // places of the fields, if there are many
	positional *node          // $
	elements   []elements
}

type field struct {
	name  string
	index int // as in value.Part
	node  *node
}

// elements are those elements of an array that an identifier's filter matches; all of them for $[].
type elements struct {
	id   string
	test Test
	node *node
}

func compareFields(a, b field) int {
	switch {
	case a.index >= 0 && b.index >= 0:
		return a.index - b.index
	case a.index >= 0:
		return -1
	case b.index >= 0:
		return 1
	}
	return strings.Compare(a.name, b.name)
}

func conflict(path, at string) error {
	return mongoerr.ConflictingUpdateOperators.Errorf("Updating the path '%s' would create a conflict at '%s'", path, at)
}

// put adds a leaf to the tree.
func (p *parser) put(path string, mod modifier) error {
	if err := checkPath(path); err != nil {
		return err
	}
	n := p.update.root
	at := ""
	for i, part := range value.ParsePath(path).Parts() {
		if i > 0 {
			at += "."
		}
		at += part.Name
		if n.mod != nil {
			return conflict(path, n.path)
		}
		next, err := p.child(n, path, at, part)
		if err != nil {
			return err
		}
		n = next
	}
	if n.mod != nil || len(n.fields) > 0 || n.positional != nil || len(n.elements) > 0 {
		return conflict(path, at)
	}
	n.mod = mod
	return nil
}

// child finds or makes the node below n that a part of a path names.
func (p *parser) child(n *node, path, at string, part value.Part) (*node, error) {
	if isElements(part.Name) {
		if len(n.fields) > 0 || n.positional != nil {
			return nil, conflict(path, n.path)
		}
		id := part.Name[2 : len(part.Name)-1]
		for _, e := range n.elements {
			if e.id == id {
				return e.node, nil
			}
		}
		e := elements{id: id, node: &node{path: at}}
		if id != "" {
			f := p.filter(id)
			if f == nil {
				return nil, mongoerr.BadValue.Errorf("No array filter found for identifier '%s' in path '%s'", id, path)
			}
			f.used = true
			e.test = f.test
		}
		n.elements = append(n.elements, e)
		return e.node, nil
	}
	if len(n.elements) > 0 {
		return nil, conflict(path, n.path)
	}
	if part.Name == "$" {
		if n.positional == nil {
			n.positional = &node{path: at}
		}
		p.update.positional = true
		return n.positional, nil
	}
	i := n.field([]byte(part.Name))
	if i < 0 {
		i = len(n.fields)
		n.fields = append(n.fields, field{part.Name, part.Index, &node{path: at}})
		if n.byName == nil {
			n.index()
		} else {
			n.byName[part.Name] = i
		}
	}
	return n.fields[i].node, nil
}

// manyFields is from how many fields on they are looked up by a map.
const manyFields = 8

// index makes byName.
func (n *node) index() {
	if n.byName = nil; len(n.fields) < manyFields {
		return
	}
	n.byName = make(map[string]int, len(n.fields))
	for i := range n.fields {
		n.byName[n.fields[i].name] = i
	}
}

// field is the place of a name among n's fields, or -1.
func (n *node) field(name []byte) int {
	if n.byName != nil {
		if i, ok := n.byName[string(name)]; ok {
			return i
		}
		return -1
	}
	for i := range n.fields {
		if n.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

// sort puts the fields in order, here and below.
func (n *node) sort() {
	slices.SortFunc(n.fields, compareFields)
	n.index()
	for i := range n.fields {
		n.fields[i].node.sort()
	}
	for i := range n.elements {
		n.elements[i].node.sort()
	}
	if n.positional != nil {
		n.positional.sort()
	}
}

func isElements(name string) bool {
	return strings.HasPrefix(name, "$[") && strings.HasSuffix(name, "]")
}

// checkPath refuses paths that no update may have.
func checkPath(path string) error {
	if path == "" {
		return mongoerr.EmptyFieldName.Errorf("An empty update path is not valid.")
	}
	parts := value.ParsePath(path).Parts()
	if len(parts) > value.DepthMax {
		return mongoerr.Overflow.Errorf("Update path has %d parts; documents are nested %d levels deep at most", len(parts), value.DepthMax)
	}
	positional := false
	for i, part := range parts {
		switch {
		case part.Name == "":
			return mongoerr.EmptyFieldName.Errorf("The update path '%s' contains an empty field name, which is not allowed.", path)
		case part.Name[0] != '$':
		case part.Name == "$" && i == 0:
			return mongoerr.BadValue.Errorf("Cannot have positional (i.e. '$') element in the first position in path '%s'", path)
		case part.Name == "$" && positional:
			return mongoerr.BadValue.Errorf("Too many positional (i.e. '$') elements found in path '%s'", path)
		case part.Name == "$":
			positional = true
		case isElements(part.Name) && i == 0:
			return mongoerr.BadValue.Errorf("Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '%s'", path)
		case isElements(part.Name):
		case i > 0 && (part.Name == "$id" || part.Name == "$ref" || part.Name == "$db"): // a DBRef's
		default:
			return mongoerr.DollarPrefixedFieldName.Errorf("The dollar ($) prefixed field '%s' in '%s' is not allowed in the context of an update.", part.Name, path)
		}
	}
	return nil
}

// isDynamic says whether a path names more than one fixed place.
func isDynamic(path string) bool {
	for _, part := range value.ParsePath(path).Parts() {
		if part.Name == "$" || isElements(part.Name) {
			return true
		}
	}
	return false
}

// resolve is the tree with each $ replaced by the position it stands for. Nodes without $ below them are shared.
func (n *node) resolve(index int) (*node, error) {
	if n.mod != nil {
		return n, nil
	}
	r := *n
	r.fields = slices.Clone(n.fields)
	r.elements = slices.Clone(n.elements)
	for i := range r.fields {
		f, err := r.fields[i].node.resolve(index)
		if err != nil {
			return nil, err
		}
		r.fields[i].node = f
	}
	for i := range r.elements {
		e, err := r.elements[i].node.resolve(index)
		if err != nil {
			return nil, err
		}
		r.elements[i].node = e
	}
	if n.positional == nil {
		return &r, nil
	}
	if index < 0 {
		return nil, mongoerr.BadValue.Errorf("The positional operator did not find the match needed from the query.")
	}
	r.positional = nil
	below, err := n.positional.resolve(index)
	if err != nil {
		return nil, err
	}
	f := field{name: strconv.Itoa(index), index: index, node: below}
	i, ok := slices.BinarySearchFunc(r.fields, f, compareFields)
	if !ok {
		r.fields = slices.Insert(r.fields, i, f)
		r.index()
		return &r, nil
	}
	r.fields[i].node, err = merge(r.fields[i].node, below)
	return &r, err
}

// merge is a node that does what both do.
func merge(a, b *node) (*node, error) {
	if a.mod != nil || b.mod != nil || (len(a.elements) > 0) != (len(b.elements) > 0) {
		return nil, mongoerr.ConflictingUpdateOperators.Errorf("Update created a conflict at '%s'", a.path)
	}
	r := &node{path: a.path, fields: slices.Clone(a.fields), elements: slices.Clone(a.elements)}
	for _, f := range b.fields {
		i, ok := slices.BinarySearchFunc(r.fields, f, compareFields)
		if !ok {
			r.fields = slices.Insert(r.fields, i, f)
			continue
		}
		m, err := merge(r.fields[i].node, f.node)
		if err != nil {
			return nil, err
		}
		r.fields[i].node = m
	}
	for _, e := range b.elements {
		i := slices.IndexFunc(r.elements, func(o elements) bool { return o.id == e.id })
		if i < 0 {
			r.elements = append(r.elements, e)
			continue
		}
		m, err := merge(r.elements[i].node, e.node)
		if err != nil {
			return nil, err
		}
		r.elements[i].node = m
	}
	r.index()
	return r, nil
}
