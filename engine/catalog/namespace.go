package catalog

import (
	"strings"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// Namespace names a collection: its database and its own name.
type Namespace struct {
	DB   string
	Coll string
}

// String is the form that MongoDB's messages use: database.collection.
func (ns Namespace) String() string { return ns.DB + "." + ns.Coll }

const (
	dbNameMax    = 63  // bytes
	namespaceMax = 255 // bytes, with the dot
)

// CheckDB says whether name can be a database's: 73 InvalidNamespace otherwise.
func CheckDB(name string) error {
	switch {
	case name == "":
		return mongoerr.InvalidNamespace.Errorf("Invalid namespace specified: a database's name must not be empty")
	case len(name) > dbNameMax:
		return mongoerr.InvalidNamespace.Errorf("Invalid namespace specified: the database name '%.80s' is longer than %d bytes", name, dbNameMax)
	case strings.ContainsAny(name, "/\\. \"$\x00"):
		return mongoerr.InvalidNamespace.Errorf("Invalid database name: '%s'", name)
	}
	return nil
}

// Check says whether ns can be read from: 73 InvalidNamespace otherwise.
func (ns Namespace) Check() error {
	if err := CheckDB(ns.DB); err != nil {
		return err
	}
	switch {
	case ns.Coll == "":
		return mongoerr.InvalidNamespace.Errorf("Invalid namespace specified '%s.'", ns.DB)
	case ns.Coll[0] == '.', strings.IndexByte(ns.Coll, 0) >= 0, len(ns.DB)+1+len(ns.Coll) > namespaceMax:
		return mongoerr.InvalidNamespace.Errorf("Invalid namespace specified '%.300s'", ns.String())
	}
	return nil
}

// CheckCreate says whether ns can be the name of a new collection.
func (ns Namespace) CheckCreate() error {
	if err := ns.Check(); err != nil {
		return err
	}
	switch {
	case strings.IndexByte(ns.Coll, '$') >= 0, ns.Coll[len(ns.Coll)-1] == '.':
		return mongoerr.InvalidNamespace.Errorf("Invalid collection name: %s", ns.Coll)
	case strings.HasPrefix(ns.Coll, "system."):
		return mongoerr.InvalidNamespace.Errorf("Invalid system namespace: %s", ns)
	}
	return nil
}
