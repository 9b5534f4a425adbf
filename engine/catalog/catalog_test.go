package catalog

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
	"github.com/multiforadb/multiforadb/engine/storage"
	"github.com/multiforadb/multiforadb/engine/value"
)

func parse(t *testing.T, spec string) IndexSpec {
	t.Helper()
	s, err := ParseIndexSpec(value.MustParseDocument(spec))
	if err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return s
}

func TestDefinitionSurvivesEncoding(t *testing.T) {
	d := NewDefinition(Namespace{"shop", "orders.old"}, UUID{1, 2, 3}, Options{})
	d.AddIndex(parse(t, `{key: {a: 1, "b.c": -1}, name: "ab", unique: true}`))
	d.AddIndex(parse(t, `{key: {at: 1}, name: "ttl", expireAfterSeconds: 60, v: 2}`))
	d.AddIndex(parse(t, `{key: {x: 1}, name: "x", partialFilterExpression: {x: {$gt: 5}}, hidden: 1}`))
	d.Indexes[1].Multikey = 1<<63 | 5
	d.AddIndex(parse(t, `{key: {"$**": 1}, name: "w", wildcardProjection: {a: 0}}`)).Learn(1, []string{"b", "a.c", "b"})
	d.Indexes[2].Building, d.Indexes[2].Side = false, 0
	got, err := Decode(d.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, d) {
		t.Fatalf("got %+v\nwant %+v", got, d)
	}
	if got.Ready() != 2 || got.Index("ttl") != 2 || got.NextTree != 10 {
		t.Fatalf("got %d ready, ttl at %d, next tree %d", got.Ready(), got.Index("ttl"), got.NextTree)
	}
}

func TestDecodeRefusesEveryTruncation(t *testing.T) {
	desc := NewDefinition(Namespace{"a", "b"}, UUID{}, Options{}).Encode()
	for n := range desc {
		if _, err := Decode(desc[:n]); !errors.Is(err, storage.ErrCorrupt) {
			t.Fatalf("%d of %d bytes: %v", n, len(desc), err)
		}
	}
}

func TestIndexSpecIsRefused(t *testing.T) {
	for _, c := range []struct {
		spec string
		code mongoerr.Code
	}{
		{`{name: "a"}`, mongoerr.FailedToParse},
		{`{key: {a: 1}}`, mongoerr.FailedToParse},
		{`{key: {}, name: "a"}`, mongoerr.CannotCreateIndex},
		{`{key: {a: 0}, name: "a"}`, mongoerr.CannotCreateIndex},
		{`{key: {a: true}, name: "a"}`, mongoerr.CannotCreateIndex},
		{`{key: {a: "wild"}, name: "a"}`, mongoerr.CannotCreateIndex},
		{`{key: {a: "text"}, name: "a"}`, mongoerr.NotImplemented},
		{`{key: {a: 1, b: 1, a: 1}, name: "a"}`, mongoerr.CannotCreateIndex},
		{`{key: {"a..b": 1}, name: "a"}`, mongoerr.CannotCreateIndex},
		{`{key: {"$a": 1}, name: "a"}`, mongoerr.CannotCreateIndex},
		{`{key: {a: 1, "$**": 1}, name: "a"}`, mongoerr.NotImplemented},
		{`{key: {"$**": 1}, name: "a", unique: true}`, mongoerr.CannotCreateIndex},
		{`{key: {"$**": 1}, name: "a", sparse: true}`, mongoerr.CannotCreateIndex},
		{`{key: {"$**": 1}, name: "a", wildcardProjection: {}}`, mongoerr.FailedToParse},
		{`{key: {"$**": 1}, name: "a", wildcardProjection: {a: 1, b: 0}}`, 31254},
		{`{key: {"a.$**": 1}, name: "a", wildcardProjection: {a: 1}}`, mongoerr.FailedToParse},
		{`{key: {a: 1}, name: "a", wildcardProjection: {a: 1}}`, mongoerr.BadValue},
		{`{key: {a: "hashed"}, name: "a", unique: true}`, 16764},
		{`{key: {a: "hashed", b: "hashed"}, name: "a"}`, 31303},
		{`{key: {a: "hashed"}, name: "a", expireAfterSeconds: 1}`, mongoerr.CannotCreateIndex},
		{`{key: {a: 1}, name: "a", uniq: true}`, mongoerr.InvalidIndexSpecificationOption},
		{`{key: {a: 1}, name: ""}`, mongoerr.CannotCreateIndex},
		{`{key: {a: 1}, name: "*"}`, mongoerr.BadValue},
		{`{key: {a: 1}, name: "_id_"}`, mongoerr.BadValue},
		{`{key: {a: 1}, name: "a", v: 7}`, mongoerr.CannotCreateIndex},
		{`{key: {a: 1}, name: "a", unique: "yes"}`, mongoerr.TypeMismatch},
		{`{key: {a: 1}, name: "a", expireAfterSeconds: -1}`, mongoerr.CannotCreateIndex},
		{`{key: {a: 1, b: 1}, name: "a", expireAfterSeconds: 1}`, mongoerr.CannotCreateIndex},
		{`{key: {_id: 1}, name: "a", expireAfterSeconds: 1}`, mongoerr.InvalidIndexSpecificationOption},
		{`{key: {a: 1}, name: "a", sparse: true, partialFilterExpression: {}}`, mongoerr.CannotCreateIndex},
		{`{key: {a: 1}, name: "a", collation: {locale: "ka"}}`, mongoerr.NotImplemented},
	} {
		if _, err := ParseIndexSpec(value.MustParseDocument(c.spec)); !mongoerr.Is(err, c.code) {
			t.Errorf("%s: got %v, want %v", c.spec, err, c.code)
		}
	}
}

func TestIDKeyIsTheIDIndex(t *testing.T) {
	if s := parse(t, `{key: {_id: 1.0}, name: "mine"}`); !s.IsID() {
		t.Fatalf("{_id: 1.0} is %s", s.Name)
	}
	if s := parse(t, `{key: {_id: -1}, name: "down"}`); s.IsID() {
		t.Fatal("{_id: -1} is the index on _id")
	}
}

func TestRelateFindsConflicts(t *testing.T) {
	d := NewDefinition(Namespace{"a", "b"}, UUID{}, Options{})
	d.AddIndex(parse(t, `{key: {a: 1}, name: "a_1"}`))
	for _, c := range []struct {
		spec string
		want Relation
		code mongoerr.Code
	}{
		{`{key: {a: 1}, name: "a_1"}`, Identical, 0},
		{`{key: {a: 1.0}, name: "a_1"}`, Identical, 0},
		{`{key: {_id: 1}, name: "_id_"}`, Identical, 0},
		{`{key: {a: -1}, name: "a_-1"}`, New, 0},
		{`{key: {a: 1}, name: "u", unique: true}`, New, 0},
		{`{key: {a: 1}, name: "other"}`, New, mongoerr.IndexOptionsConflict},
		{`{key: {a: 1}, name: "a_1", unique: true}`, New, mongoerr.IndexKeySpecsConflict},
		{`{key: {b: 1}, name: "a_1"}`, New, mongoerr.IndexKeySpecsConflict},
		{`{key: {a: 1}, name: "a_1", expireAfterSeconds: 5}`, New, mongoerr.IndexOptionsConflict},
	} {
		s := parse(t, c.spec)
		got, err := d.Relate(&s)
		if c.code != 0 && !mongoerr.Is(err, c.code) || c.code == 0 && (err != nil || got != c.want) {
			t.Errorf("%s: got %v, %v", c.spec, got, err)
		}
	}
}

func TestNamesAreChecked(t *testing.T) {
	for _, ns := range []Namespace{
		{"", "a"}, {"a", ""}, {"a b", "c"}, {"a.b", "c"}, {"a$", "c"}, {strings.Repeat("d", 64), "c"}, {"a", ".c"},
		{"a", "c\x00d"}, {"a", strings.Repeat("c", 254)}, {"a/b", "c"}, {`a\b`, "c"}, {`a"b`, "c"},
	} {
		if err := ns.Check(); !mongoerr.Is(err, mongoerr.InvalidNamespace) {
			t.Errorf("%q: %v", ns, err)
		}
	}
	for _, ns := range []Namespace{{"a", "b.c"}, {"a", "system.views"}, {"ü", "ö"}, {"a", strings.Repeat("c", 253)}} {
		if err := ns.Check(); err != nil {
			t.Errorf("%q: %v", ns, err)
		}
	}
	for _, ns := range []Namespace{{"a", "b$c"}, {"a", "system.x"}, {"a", "b."}} {
		if err := ns.CheckCreate(); !mongoerr.Is(err, mongoerr.InvalidNamespace) {
			t.Errorf("%q: %v", ns, err)
		}
	}
}

func TestOptionsAreReadAndRefused(t *testing.T) {
	for _, c := range []struct {
		options, kept string
		code          mongoerr.Code
	}{
		{`{}`, `{}`, 0},
		{`{capped: false, validator: {}, collation: {locale: "simple"}, autoIndexId: true}`, `{}`, 0},
		{`{capped: true, size: 5000}`, `{capped: true, size: 5120}`, 0},
		{`{size: 1.0, max: NumberLong(3), capped: true}`, `{capped: true, size: 4096, max: 3}`, 0},
		{`{validator: {a: 1}, validationLevel: "moderate", validationAction: "warn"}`, `{validator: {a: 1}, validationLevel: "moderate", validationAction: "warn"}`, 0},
		{`{capped: true}`, ``, mongoerr.InvalidOptions},
		{`{size: 5}`, ``, mongoerr.InvalidOptions},
		{`{capped: true, size: -5}`, ``, mongoerr.BadValue},
		{`{capped: true, size: "x"}`, ``, mongoerr.TypeMismatch},
		{`{capped: true, size: 5, max: -1}`, ``, mongoerr.BadValue},
		{`{validator: 1}`, ``, mongoerr.TypeMismatch},
		{`{validationLevel: "off and on"}`, ``, mongoerr.BadValue},
		{`{viewOn: "x", pipeline: [{$match: {}}]}`, `{viewOn: "x", pipeline: [{$match: {}}]}`, 0},
		{`{viewOn: "x", capped: true, size: 5}`, ``, mongoerr.InvalidOptions},
		{`{pipeline: []}`, ``, mongoerr.InvalidOptions},
		{`{viewOn: "x", pipeline: {}}`, ``, mongoerr.TypeMismatch},
		{`{viewOn: "x", pipeline: [1]}`, ``, mongoerr.TypeMismatch},
		{`{what: 1}`, ``, 40415},
	} {
		o, err := ParseOptions(value.MustParseDocument(c.options))
		if c.code != 0 {
			if !mongoerr.Is(err, c.code) {
				t.Errorf("%s: %v", c.options, err)
			}
			continue
		}
		if got := show(o.Raw); err != nil || got != c.kept {
			t.Errorf("%s: kept %s, %v", c.options, got, err)
		}
		if again, err := ParseOptions(o.Raw); err != nil || !reflect.DeepEqual(again, o) {
			t.Errorf("%s: again %+v, %v", c.options, again, err)
		}
	}
}
