package command

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// renameCollection gives a collection another name, perhaps in another database. Both names are whole: database and collection.
func renameCollection(c *call) error {
	from, err := wholeNamespace(field{parent: c.command.name, name: c.command.name, v: c.first()})
	if err != nil {
		return err
	}
	var to engine.Namespace
	given, dropTarget := false, false
	err = c.fields(func(f field) (known bool, err error) {
		switch f.name {
		case "to":
			given = true
			to, err = wholeNamespace(f)
			return true, err
		case "dropTarget":
			return true, f.bool(&dropTarget)
		case "stayTemp":
			return true, f.unsupported()
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if !given {
		return missing("renameCollection", "to")
	}
	return c.db.RenameCollection(c.ctx, from, to, dropTarget)
}

// wholeNamespace reads "database.collection".
func wholeNamespace(f field) (ns engine.Namespace, err error) {
	if f.seq != nil || f.v.Type != bson.TypeString {
		return ns, f.wrongType("string")
	}
	var ok bool
	if ns.DB, ns.Coll, ok = strings.Cut(strings.Clone(f.v.StringValue()), "."); !ok {
		return ns, mongoerr.InvalidNamespace.Errorf("Invalid namespace specified '%s'", ns.DB)
	}
	return ns, nil
}
