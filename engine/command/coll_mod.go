package command

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

// collMod changes options of a collection, or of one of its indexes. It tells of an index's what they were and what they are.
func collMod(c *call) error {
	ns, err := c.namespace()
	if err != nil {
		return err
	}
	var m engine.CollMod
	var index bson.Raw
	options := bsoncore.NewDocumentBuilder()
	err = c.fields(func(f field) (bool, error) {
		switch f.name {
		case "index":
			return true, f.document(&index)
		case "validator", "validationLevel", "validationAction", "changeStreamPreAndPostImages", "viewOn", "pipeline":
			if f.seq != nil {
				return true, f.wrongType("object")
			}
			if !f.null() {
				options.AppendValue(f.name, bsoncore.Value{Type: bsoncore.Type(f.v.Type), Data: f.v.Value})
			}
			return true, nil
		case "cappedSize", "cappedMax", "expireAfterSeconds", "timeseries", "dryRun":
			return true, f.unsupported()
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if index != nil {
		if err := indexMod(index, &m); err != nil {
			return err
		}
	}
	m.Options = bson.Raw(options.Build())
	res, err := c.db.CollMod(c.ctx, ns, m)
	if err != nil {
		return err
	}
	for _, e := range []struct {
		name string
		v    *int64
	}{{"expireAfterSeconds_old", res.ExpireAfterOld}, {"expireAfterSeconds_new", res.ExpireAfterNew}} {
		if e.v != nil {
			c.out = bsoncore.AppendInt64Element(c.out, e.name, *e.v)
		}
	}
	for _, e := range []struct {
		name string
		v    *bool
	}{
		{"hidden_old", res.HiddenOld}, {"hidden_new", res.HiddenNew}, {"prepareUnique_old", res.PrepareOld}, {"prepareUnique_new", res.PrepareNew},
		{"unique_new", res.UniqueNew},
	} {
		if e.v != nil {
			c.out = bsoncore.AppendBooleanElement(c.out, e.name, *e.v)
		}
	}
	return nil
}

// indexMod reads which index is to change, and how.
func indexMod(doc bson.Raw, m *engine.CollMod) error {
	err := fieldsOf("collMod.index", doc, func(f field) (bool, error) {
		switch f.name {
		case "name":
			return true, whichIndex(f, bson.TypeString, &m.Index)
		case "keyPattern":
			return true, whichIndex(f, bson.TypeEmbeddedDocument, &m.Index)
		case "expireAfterSeconds":
			if !f.null() {
				m.ExpireAfter = new(int64)
			}
			return true, f.int64(m.ExpireAfter)
		case "hidden":
			if !f.null() {
				m.Hidden = new(bool)
			}
			return true, f.bool(m.Hidden)
		case "prepareUnique":
			if !f.null() {
				m.PrepareUnique = new(bool)
			}
			return true, f.bool(m.PrepareUnique)
		case "unique":
			if err := f.bool(&m.Unique); err != nil {
				return true, err
			}
			if !m.Unique && !f.null() {
				return true, mongoerr.BadValue.Errorf("Cannot make index non-unique")
			}
			return true, nil
		}
		return false, nil
	})
	switch {
	case err != nil:
		return err
	case m.Unique && m.PrepareUnique != nil:
		return mongoerr.InvalidOptions.Errorf("collMod does not support making an index unique and changing prepareUnique at once")
	case m.Index.Type == 0:
		return mongoerr.InvalidOptions.Errorf("Must specify either index name or key pattern.")
	case m.ExpireAfter == nil && m.Hidden == nil && m.PrepareUnique == nil && !m.Unique:
		return mongoerr.InvalidOptions.Errorf("no expireAfterSeconds, hidden, unique, or prepareUnique field")
	}
	return nil
}

// whichIndex takes a name or a key pattern, but not both.
func whichIndex(f field, t bson.Type, dst *bson.RawValue) error {
	switch {
	case f.null():
		return nil
	case f.v.Type != t:
		return f.wrongType(typeName(t))
	case dst.Type != 0:
		return mongoerr.InvalidOptions.Errorf("Cannot specify both key pattern and name.")
	}
	*dst = f.v
	return nil
}
