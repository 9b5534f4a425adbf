package catalog

// Namespace names a collection: its database and its own name.
type Namespace struct {
	DB   string
	Coll string
}

// String is the form that MongoDB's messages use: database.collection.
func (ns Namespace) String() string { return ns.DB + "." + ns.Coll }
