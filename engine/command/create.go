package command

import "github.com/multiforadb/multiforadb/engine/value"

// create makes a collection. What its options mean is the engine's to say.
func create(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	options := document(func(dst []byte) []byte {
		it := value.Elements(c.req.Body)
		it.Next()
		for it.Next() {
			if !isGeneric(it.Name()) {
				dst = appendValue(dst, string(it.Name()), it.Value())
			}
		}
		return dst
	})
	for i := range c.req.Sequences {
		return unknown("create", c.req.Sequences[i].Name)
	}
	return c.db.CreateCollection(c.ctx, ns, options)
}
