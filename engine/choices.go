package engine

import (
	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/query"
)

// choices remembers which plans won their trials, for as long as the collection's definition stays as it is.
type choices struct {
	mu      env.Mutex
	byShape map[string]query.Choice
}

// choicesMax bounds how many are kept; one more, and all are forgotten.
const choicesMax = 500

func (c *choices) init(e *env.Env) { c.mu.Init(e, env.RankLeaf, "plan choices") }

func (c *choices) Recall(shape string) (query.Choice, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	choice, ok := c.byShape[shape]
	return choice, ok
}

func (c *choices) Remember(shape string, choice query.Choice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byShape == nil || len(c.byShape) >= choicesMax {
		c.byShape = map[string]query.Choice{}
	}
	c.byShape[shape] = choice
}
