package command

import (
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// listCommands gives the commands that run.
func listCommands(c *call) error {
	if err := c.noFields(); err != nil {
		return err
	}
	c.out = nested(c.out, "commands", func(dst []byte) []byte {
		for _, name := range slices.Sorted(maps.Keys(c.byName)) {
			cmd := c.byName[name]
			if cmd.run == nil || name != cmd.name {
				continue
			}
			dst = nested(dst, name, func(dst []byte) []byte {
				dst = bsoncore.AppendBooleanElement(dst, "requiresAuth", false)
				dst = bsoncore.AppendBooleanElement(dst, "adminOnly", cmd.admin)
				var versions []string
				if cmd.stable {
					versions = []string{"1"}
				}
				return appendStrings(dst, "apiVersions", versions)
			})
		}
		return dst
	})
	return nil
}
