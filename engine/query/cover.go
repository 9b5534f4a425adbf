package query

import (
	"encoding/binary"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/query/match"
)

// cover makes documents of the entries of an index, with those of its fields that a plan needs, so that it need not fetch them. They
// stand in the order of the key, as in MongoDB.
type cover struct {
	pattern   key.Pattern
	root      coverNode
	projected bool // they are what the projection makes of them
}

// coverNode is a name: a field of the index, or a document of several.
type coverNode struct {
	name     string
	field    int // if it has no children
	children []coverNode
}

// newCover is the cover that the plan has, or nil.
func newCover(p *Plan) *cover {
	needed, ok := p.needs()
	if !ok || len(needed) == 0 || p.ReturnKey {
		return nil
	}
	c := p.scan.cover(needed)
	if c != nil && p.Project != nil && !p.OnlyIDs && p.sorted {
		list, _ := p.Project.Reads()
		c.projected = len(list) == len(needed)
	}
	return c
}

// cover makes documents with the paths that are needed, or is nil.
//
// An entry tells all that a document has at a path if no array was met on it. Under a collation or a hash it does not tell the value. That
// a.b is missing does not tell whether there is an a; such documents are fetched. Nor does a.0 tell whether a is an array.
func (s *scan) cover(needed []string) *cover {
	if s.kind != scanIndex || s.index.Multikey != 0 || s.index.Collation != nil || s.index.path != "" && !s.sets[0].point() {
		return nil
	}
	c := &cover{}
	found := 0
	for i, f := range s.index.Fields {
		c.pattern.Fields = append(c.pattern.Fields, key.Field{Kind: f.Kind})
		if slices.Contains(needed, f.Path) && f.Kind != key.Hashed && f.Path != key.WildPathField && !numbered(f.Path) {
			if !c.root.add(strings.Split(f.Path, "."), i) {
				return nil
			}
			found++
		}
	}
	if found != len(needed) {
		return nil
	}
	return c
}

// sieve is the part of a filter that an index's entries tell enough for, so that what does not pass it is not fetched.
type sieve struct {
	*cover
	filter *match.Filter
	rest   *match.Filter // what is left to test of the document; nil: nothing
}

// newSieve is the sieve of a plan that fetches, or nil.
func newSieve(p *Plan) *sieve {
	if p.residual == nil || p.cover != nil {
		return nil
	}
	var told, rest []match.Node
	var paths []string
	for _, n := range conjunction(p.residual.Root()) {
		reads, all := p.residual.With(n).Reads()
		if all || p.scan.cover(reads) == nil {
			rest = append(rest, n)
			continue
		}
		told = append(told, n)
		paths = append(paths, reads...)
	}
	if len(told) == 0 {
		return nil
	}
	slices.Sort(paths)
	s := &sieve{cover: p.scan.cover(slices.Compact(paths)), filter: p.residual.With(match.Conjunction(told...))}
	if s.cover == nil { // one path leads through another
		return nil
	}
	if len(rest) > 0 {
		s.rest = p.residual.With(match.Conjunction(rest...))
	}
	return s
}

// needs are the paths that the plan looks at in documents, each once; ok is false if it takes more than some paths.
func (p *Plan) needs() (paths []string, ok bool) {
	switch {
	case p.OnlyIDs:
	case p.Project == nil && p.Fields != nil:
		paths = slices.Clone(p.Fields)
	default:
		if p.Project == nil || !p.Project.Plain() {
			return nil, false
		}
		list, all := p.Project.Reads()
		if all {
			return nil, false
		}
		paths = list
	}
	if p.residual != nil {
		list, all := p.residual.Reads()
		if all {
			return nil, false
		}
		paths = append(paths, list...)
	}
	if !p.sorted {
		for _, f := range p.Sort.Fields() {
			paths = append(paths, f.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), true
}

// add adds the path of an index's field; it is false if a path leads through another.
func (n *coverNode) add(parts []string, field int) bool {
	for i := range n.children {
		if c := &n.children[i]; c.name == parts[0] {
			return len(parts) > 1 && len(c.children) > 0 && c.add(parts[1:], field)
		}
	}
	c := coverNode{name: parts[0], field: field}
	ok := len(parts) == 1 || c.add(parts[1:], field)
	n.children = append(n.children, c)
	return ok
}

// covered is a cover under way.
type covered struct {
	*cover
	decoder key.Decoder
	doc     []byte
	fetched bool // the entry did not tell enough, so that the document was fetched
}

// document makes a document of an entry. It is nil if the entry does not tell enough. It dies with the next one.
func (c *covered) document(entry, trailer []byte) (bson.Raw, error) {
	c.decoder.Pattern = c.pattern
	values, err := c.decoder.Decode(entry, trailer)
	if err != nil {
		return nil, err
	}
	var ok bool
	if c.doc, ok = c.root.append(c.doc[:0], values, true); !ok {
		return nil, nil
	}
	return c.doc, nil
}

var noFields = bson.Raw{5, 0, 0, 0, 0}

func (n *coverNode) append(dst []byte, values []bson.RawValue, top bool) ([]byte, bool) {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i := range n.children {
		c := &n.children[i]
		if len(c.children) > 0 {
			dst = append(append(append(dst, byte(bson.TypeEmbeddedDocument)), c.name...), 0)
			var ok bool
			if dst, ok = c.append(dst, values, false); !ok {
				return dst, false
			}
			continue
		}
		v := values[c.field]
		if v.Type == 0 {
			if !top {
				return dst, false
			}
			continue
		}
		dst = append(append(append(append(dst, byte(v.Type)), c.name...), 0), v.Value...)
	}
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at))
	return dst, true
}

// keyDocument appends the document that returnKey gives: the fields of an index's entry by their paths.
func (x *Index) keyDocument(dst, entry, trailer []byte) ([]byte, error) {
	d := key.Decoder{}
	for _, f := range x.Fields {
		d.Pattern.Fields = append(d.Pattern.Fields, key.Field{Kind: f.Kind})
	}
	values, err := d.Decode(entry, trailer)
	if err != nil {
		return dst, err
	}
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i, v := range values {
		if v.Type == 0 {
			v.Type = bson.TypeNull
		}
		dst = append(append(append(append(dst, byte(v.Type)), x.Fields[i].Path...), 0), v.Value...)
	}
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at))
	return dst, nil
}
