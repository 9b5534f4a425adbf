package unified

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/tag"
)

// args are the arguments of an operation, or the fields of an entity. Each must be used: what is left over says that the driver has no
// such option, and done turns it into a skip.
type args struct {
	what string // whose they are
	raw  bson.Raw
	used map[string]bool
	err  error // the first
}

func newArgs(what string, raw bson.Raw) *args {
	return &args{what: what, raw: raw, used: make(map[string]bool)}
}

// get gives an argument; one that is not there has no type.
func (a *args) get(name string) bson.RawValue {
	a.used[name] = true
	if a.raw == nil {
		return bson.RawValue{}
	}
	v, _ := a.raw.LookupErr(name)
	return v
}

func (a *args) has(name string) bool { return a.get(name).Type != 0 }

// fail keeps the first error.
func (a *args) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// done gives the first error, or the skip of an argument that nobody asked for.
func (a *args) done() error {
	var reason skip
	switch {
	case errors.As(a.err, &reason):
		return reason
	case a.err != nil:
		return &unable{a.err}
	case a.raw == nil:
		return nil
	}
	elements, err := a.raw.Elements()
	if err != nil {
		return err
	}
	for _, e := range elements {
		if !a.used[e.Key()] {
			return skip(fmt.Sprintf("the Go driver has no option %s of %s", e.Key(), a.what))
		}
	}
	return nil
}

// set hands an argument to a setter of the driver's options, if it is there.
func set[T, R any](a *args, name string, as func(bson.RawValue) (T, error), apply func(T) R) {
	v := a.get(name)
	if v.Type == 0 {
		return
	}
	t, err := as(v)
	if err != nil {
		a.fail(fmt.Errorf("%s: argument %s: %w", a.what, name, err))
		return
	}
	apply(t)
}

// need gives an argument that must be there.
func need[T any](a *args, name string, as func(bson.RawValue) (T, error)) (out T) {
	if !a.has(name) {
		a.fail(fmt.Errorf("%s: no argument %s", a.what, name))
		return out
	}
	return want(a, name, as)
}

// want gives an argument, or nought.
func want[T any](a *args, name string, as func(bson.RawValue) (T, error)) (out T) {
	set(a, name, as, func(t T) bool { out = t; return true })
	return out
}

func wrong(v bson.RawValue, noun string) error { return fmt.Errorf("%s is no %s", show(v), noun) }

func asBool(v bson.RawValue) (bool, error) {
	b, ok := v.BooleanOK()
	if !ok {
		return false, wrong(v, "bool")
	}
	return b, nil
}

func asString(v bson.RawValue) (string, error) {
	s, ok := v.StringValueOK()
	if !ok {
		return "", wrong(v, "string")
	}
	return s, nil
}

func asInt64(v bson.RawValue) (int64, error) {
	n, ok := v.AsInt64OK()
	if !ok {
		return 0, wrong(v, "number")
	}
	return n, nil
}

func asInt32(v bson.RawValue) (int32, error) {
	n, err := asInt64(v)
	return int32(n), err
}

func asMillis(v bson.RawValue) (time.Duration, error) {
	n, err := asInt64(v)
	return time.Duration(n) * time.Millisecond, err
}

func asSeconds(v bson.RawValue) (time.Duration, error) {
	n, err := asInt64(v)
	return time.Duration(n) * time.Second, err
}

func asDocument(v bson.RawValue) (bson.Raw, error) {
	d, ok := v.DocumentOK()
	if !ok {
		return nil, wrong(v, "document")
	}
	return d, nil
}

// asAny gives a value as the driver takes it where it takes anything.
func asAny(v bson.RawValue) (any, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return v.Document(), nil
	case bson.TypeString:
		return v.StringValue(), nil
	case bson.TypeArray:
		return asList(v)
	}
	return v, nil
}

// asList is an array; its documents stay as they are.
func asList(v bson.RawValue) ([]any, error) {
	array, ok := v.ArrayOK()
	if !ok {
		return nil, wrong(v, "array")
	}
	values, err := array.Values()
	if err != nil {
		return nil, err
	}
	out := make([]any, len(values))
	for i, e := range values {
		if out[i], err = asAny(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func asDocuments(v bson.RawValue) ([]bson.Raw, error) {
	array, ok := v.ArrayOK()
	if !ok {
		return nil, wrong(v, "array")
	}
	values, err := array.Values()
	if err != nil {
		return nil, err
	}
	out := make([]bson.Raw, len(values))
	for i, e := range values {
		if out[i], err = asDocument(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// asBytes is {$$hexBytes: "…"}.
func asBytes(v bson.RawValue) ([]byte, error) {
	op, arg, ok := operator(v)
	if !ok || op != "$$hexBytes" {
		return nil, wrong(v, "$$hexBytes")
	}
	return hex.DecodeString(arg.StringValue())
}

func asCollation(v bson.RawValue) (*options.Collation, error) {
	d, err := asDocument(v)
	if err != nil {
		return nil, err
	}
	a, c := newArgs("collation", d), new(options.Collation)
	c.Locale = want(a, "locale", asString)
	c.CaseLevel = want(a, "caseLevel", asBool)
	c.CaseFirst = want(a, "caseFirst", asString)
	c.Strength = int(want(a, "strength", asInt64))
	c.NumericOrdering = want(a, "numericOrdering", asBool)
	c.Alternate = want(a, "alternate", asString)
	c.MaxVariable = want(a, "maxVariable", asString)
	c.Normalization = want(a, "normalization", asBool)
	c.Backwards = want(a, "backwards", asBool)
	return c, a.done()
}

func asReadConcern(v bson.RawValue) (*readconcern.ReadConcern, error) {
	d, err := asDocument(v)
	if err != nil {
		return nil, err
	}
	a := newArgs("readConcern", d)
	c := &readconcern.ReadConcern{Level: want(a, "level", asString)}
	return c, a.done()
}

func asWriteConcern(v bson.RawValue) (*writeconcern.WriteConcern, error) {
	d, err := asDocument(v)
	if err != nil {
		return nil, err
	}
	a, c := newArgs("writeConcern", d), new(writeconcern.WriteConcern)
	switch w := a.get("w"); {
	case w.Type == bson.TypeString:
		c.W = w.StringValue()
	case isNumber(w):
		c.W = int(w.AsInt64())
	}
	set(a, "journal", asBool, func(j bool) bool { c.Journal = &j; return j })
	return c, a.done()
}

func asReadPreference(v bson.RawValue) (*readpref.ReadPref, error) {
	d, err := asDocument(v)
	if err != nil {
		return nil, err
	}
	a := newArgs("readPreference", d)
	mode, err := readpref.ModeFromString(need(a, "mode", asString))
	if err != nil {
		return nil, err
	}
	var opts []readpref.Option
	set(a, "maxStalenessSeconds", asSeconds, func(d time.Duration) bool { opts = append(opts, readpref.WithMaxStaleness(d)); return true })
	for _, doc := range want(a, "tagSets", asDocuments) {
		elements, err := doc.Elements()
		if err != nil {
			return nil, err
		}
		var tags tag.Set
		for _, e := range elements {
			tags = append(tags, tag.Tag{Name: e.Key(), Value: e.Value().StringValue()})
		}
		opts = append(opts, readpref.WithTagSets(tags))
	}
	if err := a.done(); err != nil {
		return nil, err
	}
	return readpref.New(mode, opts...)
}
