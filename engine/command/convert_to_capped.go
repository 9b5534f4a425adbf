package command

// convertToCapped bounds a collection, whose oldest documents give way.
func convertToCapped(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	given, size := false, int64(0)
	err = c.fields(func(f field) (bool, error) {
		if f.name == "size" {
			given = !f.null()
			return true, f.int64(&size)
		}
		return false, nil
	})
	switch {
	case err != nil:
		return err
	case !given:
		return missing("convertToCapped", "size")
	}
	return c.db.ConvertToCapped(c.ctx, ns, size)
}
