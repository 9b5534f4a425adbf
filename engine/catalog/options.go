package catalog

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/multiforadb/multiforadb/engine/collation"
	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/value"
)

// Options are what a client says of a collection.
type Options struct {
	Raw bson.Raw // as listCollections shows it

	// Capped collections hold at most Size bytes of documents and, if it is not 0, Max documents: the oldest give way.
	Capped bool
	Size   int64
	Max    int64

	Validator bson.Raw // a filter, or nil
	Moderate  bool     // documents that were invalid already may stay so
	Lenient   bool     // what is invalid is logged and not refused
	Unchecked bool     // validationLevel off

	// Collation is that of commands and indexes that do not name one; nil is by bytes.
	Collation *collation.Collation

	// ViewOn is, of a view, the collection or view of the same database that its pipeline reads.
	ViewOn   string
	Pipeline []bson.Raw
}

const (
	cappedSizeMin = 4096
	cappedSizeMax = 1 << 50
	cappedMaxMax  = 1 << 31
)

// ParseOptions reads a collection's options as create has them, or a Raw of before. It refuses what is not supported, and what MongoDB
// refuses. Options that say what is the case anyway (capped: false, an empty validator) are not kept.
func ParseOptions(options bson.Raw) (Options, error) {
	var o Options
	kept := bsoncore.NewDocumentBuilder()
	keep := func(name string, v bson.RawValue) {
		kept.AppendValue(name, bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
	}
	var size, most bson.RawValue
	for it := value.Elements(options); it.Next(); {
		name, v := string(it.Name()), it.Value()
		var err error
		switch name {
		case "capped":
			if o.Capped, err = flag(name, v); o.Capped {
				keep(name, v)
			}
		case "size":
			size = v
		case "max":
			most = v
		case "validator":
			doc, ok := v.DocumentOK()
			if !ok {
				return o, wrongType(name, v, "object")
			}
			if len(doc) > 5 {
				o.Validator = doc
				keep(name, v)
			}
		case "validationLevel", "validationAction":
			if err = o.set(name, v); err == nil {
				keep(name, v)
			}
		case "collation":
			if o.Collation, err = collation.Read(name, v); o.Collation != nil {
				keep(name, value.Document(o.Collation.Raw()))
			}
		case "changeStreamPreAndPostImages":
			var on bool
			if on, err = images(name, v); on {
				keep(name, v)
			}
		case "viewOn", "pipeline":
			if err = o.setView(name, v); err == nil {
				keep(name, v)
			}
		case "timeseries", "clusteredIndex", "expireAfterSeconds", "encryptedFields":
			if value.Truth(v) {
				err = mongoerr.NotImplemented.Errorf("the collection option '%s' is not implemented", name)
			}
		case "storageEngine", "indexOptionDefaults", "autoIndexId", "idIndex":
			// They choose between storage engines and ways to have the index on _id; there is one of each here.
		default:
			err = mongoerr.Code(40415).Errorf("BSON field 'create.%s' is an unknown field.", name)
		}
		if err != nil {
			return o, err
		}
	}
	if err := o.setCapped(size, most, keep); err != nil {
		return o, err
	}
	if err := o.checkView(); err != nil {
		return o, err
	}
	o.Raw = bson.Raw(kept.Build())
	return o, nil
}

// set sets one of the two options that say what validation does.
func (o *Options) set(name string, v bson.RawValue) error {
	s, ok := v.StringValueOK()
	if !ok {
		return wrongType(name, v, "string")
	}
	switch name + " " + s {
	case "validationLevel strict":
		o.Moderate, o.Unchecked = false, false
	case "validationLevel moderate":
		o.Moderate, o.Unchecked = true, false
	case "validationLevel off":
		o.Moderate, o.Unchecked = false, true
	case "validationAction error":
		o.Lenient = false
	case "validationAction warn":
		o.Lenient = true
	default:
		return mongoerr.BadValue.Errorf("Enumeration value '%s' for field 'create.%s' is not a valid value.", s, name)
	}
	return nil
}

// IsView says whether it is a view.
func (o *Options) IsView() bool { return o.ViewOn != "" }

func (o *Options) setView(name string, v bson.RawValue) error {
	if name == "viewOn" {
		s, ok := v.StringValueOK()
		if !ok {
			return wrongType(name, v, "string")
		}
		if s == "" {
			return mongoerr.BadValue.Errorf("'viewOn' must not be empty")
		}
		o.ViewOn = s
		return nil
	}
	if v.Type != bson.TypeArray {
		return wrongType(name, v, "array")
	}
	o.Pipeline = []bson.Raw{}
	for it := value.Elements(v.Value); it.Next(); {
		stage, ok := it.Value().DocumentOK()
		if !ok {
			return mongoerr.TypeMismatch.Errorf("Each element of the 'pipeline' array must be an object")
		}
		o.Pipeline = append(o.Pipeline, stage)
	}
	return nil
}

// checkView holds what a view has, and what it has not.
func (o *Options) checkView() error {
	switch {
	case o.Pipeline != nil && o.ViewOn == "":
		return mongoerr.InvalidOptions.Errorf("'pipeline' requires 'viewOn' to also be specified")
	case o.ViewOn == "":
		return nil
	case o.Capped:
		return mongoerr.InvalidOptions.Errorf("Cannot specify 'capped' and 'viewOn' together")
	case o.Validator != nil:
		return mongoerr.InvalidOptions.Errorf("Cannot specify 'validator' and 'viewOn' together")
	}
	return nil
}

// images reads {enabled: bool}: whether change streams may ask for documents as they were. That is for change streams to honour; nobody
// else can tell.
func images(name string, v bson.RawValue) (on bool, err error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return false, wrongType(name, v, "object")
	}
	for it := value.Elements(doc); it.Next(); {
		if string(it.Name()) != "enabled" {
			return false, mongoerr.Code(40415).Errorf("BSON field '%s.%s' is an unknown field.", name, it.Name())
		}
		if on, err = flag(name+".enabled", it.Value()); err != nil {
			return false, err
		}
	}
	return on, nil
}

func (o *Options) setCapped(size, most bson.RawValue, keep func(string, bson.RawValue)) error {
	if !o.Capped {
		if value.Truth(size) || value.Truth(most) {
			return mongoerr.InvalidOptions.Errorf("the 'size' and 'max' of a collection need 'capped' to be true")
		}
		return nil
	}
	if size.Type == 0 {
		return mongoerr.InvalidOptions.Errorf("the 'size' field is required when 'capped' is true")
	}
	var err error
	if o.Size, err = wholeNumber("size", size); err != nil {
		return err
	}
	if o.Size < 1 || o.Size > cappedSizeMax {
		return mongoerr.BadValue.Errorf("the 'size' of a capped collection must lie between 1 and %d bytes, but is %d", int64(cappedSizeMax), o.Size)
	}
	// As MongoDB rounds it.
	o.Size = max((o.Size+255)&^255, cappedSizeMin)
	keep("size", shortest(o.Size))
	if most.Type == 0 {
		return nil
	}
	if o.Max, err = wholeNumber("max", most); err != nil {
		return err
	}
	if o.Max < 0 || o.Max >= cappedMaxMax {
		return mongoerr.BadValue.Errorf("the 'max' of a capped collection must be less than %d documents, but is %d", int64(cappedMaxMax), o.Max)
	}
	if o.Max > 0 {
		keep("max", shortest(o.Max))
	}
	return nil
}

// shortest is n as an int32 if it is one.
func shortest(n int64) bson.RawValue {
	if n <= math.MaxInt32 {
		return value.Int32(int32(n))
	}
	return value.Int64(n)
}

// With gives the document with a field set, or without it if v is missing.
func With(doc bson.Raw, name string, v bson.RawValue) bson.Raw {
	b := bsoncore.NewDocumentBuilder()
	found := false
	add := func(name string, v bson.RawValue) {
		if v.Type != 0 {
			b.AppendValue(name, bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
		}
	}
	for it := value.Elements(doc); it.Next(); {
		if string(it.Name()) == name {
			found = true
			add(name, v)
			continue
		}
		add(string(it.Name()), it.Value())
	}
	if !found {
		add(name, v)
	}
	return bson.Raw(b.Build())
}
