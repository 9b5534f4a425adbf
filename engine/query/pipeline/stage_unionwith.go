package pipeline

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// unionStage gives the documents before, then those that a pipeline makes of another collection.
type unionStage struct{ pipe *subPipe }

func parseUnionWith(p *parser, arg bson.RawValue) (stage, error) {
	var ns Namespace
	var stages []bson.Raw
	var err error
	if arg.Type == bson.TypeString {
		ns, err = p.from("$unionWith", arg)
	} else {
		v, e := fields("$unionWith", arg, "coll", "pipeline", "db")
		if e != nil {
			return nil, e
		}
		if v[0].Type != 0 {
			name, err := text("$unionWith", "coll", v[0])
			if err != nil {
				return nil, err
			}
			ns = Namespace{p.opts.Namespace.DB, name}
			if v[2].Type != 0 {
				if ns.DB, err = text("$unionWith", "db", v[2]); err != nil {
					return nil, err
				}
			}
		}
		if v[1].Type != 0 {
			stages, err = Split(v[1])
		} else if v[0].Type == 0 {
			err = missing("$unionWith", "coll")
		}
	}
	if err != nil {
		return nil, err
	}
	pipe, err := p.other(ns, p.scope, stages)
	return &unionStage{pipe}, err
}

func (s *unionStage) run(in Iterator) Iterator {
	first := true
	second := after(nil, func() (Iterator, error) { return s.pipe.start(nil) })
	return &union{iter{in: in, next: func() (bson.Raw, error) {
		if first {
			doc, err := in.Next()
			if err != nil || doc != nil {
				return doc, err
			}
			first = false
		}
		return second.Next()
	}}, second}
}

// union closes both its parts.
type union struct {
	iter
	second Iterator
}

func (u *union) Close() error {
	err := u.iter.Close()
	if e := u.second.Close(); err == nil {
		err = e
	}
	return err
}
