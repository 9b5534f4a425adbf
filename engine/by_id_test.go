package engine

import (
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/value"
)

// Whatever a query has beside its filter sends it the long way, also what a query will have one day.
func TestShortWayIsForPlainQueries(t *testing.T) {
	plain := Find{Filter: doc(`{_id: 5}`), Limit: 1, MemoryOnly: true}
	if _, ok := plain.byID(); !ok {
		t.Error("a plain query goes the long way")
	}
	for i := range reflect.TypeFor[Find]().NumField() {
		f := plain
		field := reflect.ValueOf(&f).Elem().Field(i)
		name := reflect.TypeFor[Find]().Field(i).Name
		switch v := field.Addr().Interface().(type) {
		case *bson.Raw:
			*v = doc(`{a: 1}`)
		case *bson.RawValue:
			*v = value.String("x")
		case *int64:
			*v = 3
		case *[]string:
			*v = []string{"a"}
		case *bool:
			*v = true
		default:
			t.Fatalf("%s is of a type that this test does not know", name)
		}
		if _, ok := f.byID(); ok && name != "Limit" && name != "MemoryOnly" {
			t.Errorf("with %s a query goes the short way", name)
		}
	}
	for _, filter := range []string{`{}`, `{_id: {$gt: 5}}`, `{_id: 5, a: 1}`, `{a: 1, _id: 5}`, `{_id: null}`, `{_id: [5]}`, `{_id: /x/}`, `{_id: {a: 1}}`} {
		f := Find{Filter: doc(filter)}
		if _, ok := f.byID(); ok {
			t.Errorf("%s goes the short way", filter)
		}
	}
}
