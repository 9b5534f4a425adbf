package command

// ping answers.
func ping(c *call) error { return c.noFields() }
