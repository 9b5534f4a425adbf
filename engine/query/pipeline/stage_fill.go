package pipeline

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// parseFill reads $fill, which is other stages: $setWindowFields with $locf and $linearFill for the methods, $addFields with $ifNull
// for the values.
func parseFill(p *parser, arg bson.RawValue) (stage, error) {
	v, err := fields("$fill", arg, "partitionBy", "partitionByFields", "sortBy", "output")
	if err != nil {
		return nil, err
	}
	if v[3].Type != bson.TypeEmbeddedDocument {
		return nil, missing("$fill", "output")
	}
	part := v[0]
	if v[1].Type != 0 {
		if part.Type != 0 {
			return nil, code(6050204).Errorf("maximum one of 'partitionBy' and 'partitionByFields' can be specified in '$fill'")
		}
		d := newDocument()
		i := 0
		for it := value.Elements(v[1].Value); it.Next(); i++ {
			name := string(value.StringBytes(it.Value()))
			if _, err := fieldPath(name); err != nil {
				return nil, err
			}
			d.field("f"+strconv.Itoa(i), value.String("$"+name))
		}
		part = value.Document(d.raw())
	}
	methods, values := newDocument(), newDocument()
	nMethods, nValues := 0, 0
	for it := value.Elements(v[3].Value); it.Next(); {
		name := string(it.Name())
		f, err := fields("$fill.output", it.Value(), "value", "method")
		if err != nil {
			return nil, err
		}
		switch {
		case (f[0].Type == 0) == (f[1].Type == 0):
			return nil, code(6050202).Errorf("each fill specification must have exactly one of 'method' or 'value' fields")
		case f[0].Type != 0:
			nValues++
			d := newDocument()
			d.field("$ifNull", arrayOf([]bson.RawValue{value.String("$" + name), f[0]}))
			values.field(name, value.Document(d.raw()))
			continue
		}
		op := map[string]string{"linear": "$linearFill", "locf": "$locf"}[string(value.StringBytes(f[1]))]
		if op == "" {
			return nil, code(6050202).Errorf("method must be either locf or linear")
		}
		if v[2].Type == 0 {
			return nil, mongoerr.FailedToParse.Errorf("$fill with a method needs a sortBy")
		}
		nMethods++
		d := newDocument()
		d.field(op, value.String("$"+name))
		methods.field(name, value.Document(d.raw()))
	}
	var c chain
	if nMethods > 0 {
		d := newDocument()
		d.field("partitionBy", part)
		d.field("sortBy", v[2])
		d.field("output", value.Document(methods.raw()))
		s, err := parseSetWindowFields(p, value.Document(d.raw()))
		if err != nil {
			return nil, err
		}
		c = append(c, s)
	}
	if nValues > 0 {
		s, err := parseAddFields(p, value.Document(values.raw()))
		if err != nil {
			return nil, err
		}
		c = append(c, s)
	}
	return c, nil
}
