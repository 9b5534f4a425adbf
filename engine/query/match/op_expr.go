package match

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

func parseExpr(p *parser, arg bson.RawValue) (Node, error) {
	switch {
	case p.opts.Expr == nil:
		return nil, mongoerr.NotImplemented.Errorf("$expr is not implemented here")
	case p.nested > 0:
		return nil, mongoerr.BadValue.Errorf("$expr can only be applied to the top-level document")
	}
	eval, err := p.opts.Expr(arg)
	if err != nil {
		return nil, err
	}
	return &Expr{Value: arg, eval: eval}, nil
}

func (e *eval) expr(n *Expr) bool {
	if e.err != nil {
		return false
	}
	ok, err := n.eval(e.doc)
	if err != nil {
		e.err = err
	}
	return ok
}
