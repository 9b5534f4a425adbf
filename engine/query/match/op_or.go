package match

import "go.mongodb.org/mongo-driver/v2/bson"

func parseOr(p *parser, arg bson.RawValue) (Node, error) {
	nodes, err := p.documents("$or", arg)
	if err != nil {
		return nil, err
	}
	or := makeOr(nodes)
	if o, ok := or.(*Or); ok {
		return p.orToIn(o), nil
	}
	return or, nil
}

// orToIn makes one In of an Or of equalities on one path: it is tested by one search instead of one test a clause.
func (p *parser) orToIn(or *Or) Node {
	first, ok := or.Nodes[0].(*Comparison)
	if !ok {
		return or
	}
	values := make([]bson.RawValue, 0, len(or.Nodes))
	for _, n := range or.Nodes {
		c, ok := n.(*Comparison)
		if !ok || c.Op != Eq || c.Path != first.Path {
			return or
		}
		values = append(values, c.Value)
	}
	return &In{Path: first.Path, Values: values, path: first.path, set: newSet(&values, p.opts.Collation)}
}
