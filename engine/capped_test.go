package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestConvertToCappedKeepsTheNewest(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	ns := Namespace{DB: "a", Coll: "c"}
	const n = 1000
	docs := make([]bson.Raw, n)
	for i := range docs {
		docs[i] = doc(fmt.Sprintf(`{_id: %d, t: %q}`, i, strings.Repeat("x", 80)))
	}
	if _, err := db.Insert(ctx, ns, docs, true); err != nil {
		t.Fatal(err)
	}
	size := int64(10*len(docs[0])) &^ 255
	if err := db.ConvertToCapped(ctx, ns, max(size, 4096)); err != nil {
		t.Fatal(err)
	}
	keep := 4096 / len(docs[0])
	var ids []int32
	cur, err := db.Find(ctx, ns, Find{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cur.Batch(ctx, n, func(d bson.Raw) bool {
		ids = append(ids, d.Lookup("_id").Int32())
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(ids) != keep || ids[0] != int32(n-keep) || ids[keep-1] != n-1 {
		t.Fatalf("%d documents are left, from %d to %d", len(ids), ids[0], ids[len(ids)-1])
	}
	if _, err := db.Insert(ctx, ns, []bson.Raw{doc(fmt.Sprintf(`{_id: %d, t: %q}`, n, strings.Repeat("x", 80)))}, true); err != nil {
		t.Fatal(err)
	}
	if c, err := db.Count(ctx, ns, Count{}); err != nil || c != int64(keep) {
		t.Fatal(c, err)
	}
}
