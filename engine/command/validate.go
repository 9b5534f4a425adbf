package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// validate checks a collection's documents and indexes against each other. It is the same with and without full; warnings say what
// it has left out.
func validate(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	full := false
	err = c.fields(func(f field) (bool, error) {
		switch f.name {
		case "full":
			return true, f.bool(&full)
		case "background", "checkBSONConformance":
			// Readers and writers never wait for it, and every document is checked to be valid BSON.
			return true, f.ignored(bson.TypeBoolean)
		case "repair", "metadata", "fixMultikey":
			return true, f.unsupported()
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	v, err := c.db.Validate(c.ctx, ns)
	if err != nil {
		return err
	}
	var faults, warnings []string
	for _, f := range v.Faults {
		faults = append(faults, f.Error())
	}
	if full {
		warnings = append(warnings, "pages and checksums are gone through by the check of the files, while no server has them open")
	}
	c.out = bsoncore.AppendStringElement(c.out, "ns", ns.String())
	c.out = appendCount(c.out, "nrecords", v.Records)
	c.out = appendCount(c.out, "nIndexes", int64(len(v.Indexes)))
	c.out = nested(c.out, "keysPerIndex", func(dst []byte) []byte {
		for _, x := range v.Indexes {
			dst = appendCount(dst, x.Name, x.Keys)
		}
		return dst
	})
	c.out = bsoncore.AppendBooleanElement(c.out, "valid", len(faults) == 0)
	c.out = bsoncore.AppendBooleanElement(c.out, "repaired", false)
	c.out = appendStrings(c.out, "warnings", warnings)
	c.out = appendStrings(c.out, "errors", faults)
	return nil
}
