package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// connectionStatus tells who the client is: nobody, while there are no users.
func connectionStatus(c *call) error {
	privileges := false
	err := c.fields(func(f field) (bool, error) {
		switch f.name {
		case "showPrivileges":
			return true, f.bool(&privileges)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	c.out = nested(c.out, "authInfo", func(dst []byte) []byte {
		dst = appendStrings(dst, "authenticatedUsers", nil)
		dst = appendStrings(dst, "authenticatedUserRoles", nil)
		if privileges {
			dst = appendStrings(dst, "authenticatedUserPrivileges", nil)
		}
		return dst
	})
	return nil
}

// whatsmyuri tells the client's address.
func whatsmyuri(c *call) error {
	if err := c.noFields(); err != nil {
		return err
	}
	c.out = bsoncore.AppendStringElement(c.out, "you", c.client.Remote)
	return nil
}

// logout ends what there is not: an authentication.
func logout(c *call) error {
	return c.fields(func(f field) (bool, error) {
		return f.name == "username", f.ignored(bson.TypeString)
	})
}
