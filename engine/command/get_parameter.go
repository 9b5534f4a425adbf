package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// parameters are what getParameter knows, by name. None can be set.
var parameters = []struct {
	name   string
	append func(dst []byte, name string) []byte
}{
	{"authenticationMechanisms", func(dst []byte, name string) []byte { return appendStrings(dst, name, nil) }},
	{"enableTestCommands", func(dst []byte, name string) []byte { return bsoncore.AppendBooleanElement(dst, name, false) }},
	{"featureCompatibilityVersion", func(dst []byte, name string) []byte {
		return nested(dst, name, func(dst []byte) []byte { return bsoncore.AppendStringElement(dst, "version", "8.0") })
	}},
	{"localLogicalSessionTimeoutMinutes", func(dst []byte, name string) []byte {
		return bsoncore.AppendInt32Element(dst, name, sessionTimeoutMinutes)
	}},
	{"requireApiVersion", func(dst []byte, name string) []byte { return bsoncore.AppendBooleanElement(dst, name, false) }},
}

// getParameter gives the parameters that the command's fields name, or all.
func getParameter(c *call) error {
	v := c.first()
	all := v.Type == bson.TypeString && v.StringValue() == "*"
	if v.Type == bson.TypeEmbeddedDocument {
		err := fieldsOf("getParameter.getParameter", v.Value, func(f field) (bool, error) {
			switch f.name {
			case "allParameters":
				return true, f.bool(&all)
			case "showDetails":
				return true, f.unsupported()
			}
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	found := false
	for _, p := range parameters {
		if all || value.Lookup(c.req.Body, p.name).Type != 0 {
			c.out = p.append(c.out, p.name)
			found = true
		}
	}
	if !found {
		return mongoerr.InvalidOptions.Errorf("no option found to get")
	}
	return nil
}
