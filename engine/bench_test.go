package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// benchDB has 20 000 documents of 1 KiB, with an index on n.
func benchDB(b *testing.B) *DB { return benchDocuments(b, 20_000) }

func benchDocuments(b *testing.B, n int) *DB {
	db := open(b)
	createIndex(b, db, `{key: {n: 1}, name: "n"}`)
	pad := strings.Repeat("x", 100)
	for at := 0; at < n; at += 1000 {
		var in []bson.Raw
		for i := at; i < at+1000; i++ {
			in = append(in, doc(fmt.Sprintf(`{_id: %d, n: %d, a: %d, b: "%d", p1: "%s", p2: "%s", p3: "%s", p4: "%s", p5: "%s", p6: "%s", p7: "%s", p8: "%s", p9: "%s"}`,
				i, i, i%10, i%7, pad, pad, pad, pad, pad, pad, pad, pad, pad)))
		}
		if r, err := db.Insert(context.Background(), ns, in, true); err != nil || r.N != 1000 {
			b.Fatal(r, err)
		}
	}
	b.ResetTimer()
	b.ReportAllocs()
	return db
}

func benchFind(b *testing.B, db *DB, f Find, want int) {
	n := 0
	c, err := db.Find(context.Background(), ns, f)
	if err != nil {
		b.Fatal(err)
	}
	for more := true; more; {
		if more, err = c.Batch(context.Background(), 1<<30, func(bson.Raw) bool { n++; return true }); err != nil {
			b.Fatal(err)
		}
	}
	if n != want {
		b.Fatalf("%d documents, want %d", n, want)
	}
}

func BenchmarkFindByID(b *testing.B) {
	db := benchDB(b)
	for i := range b.N {
		benchFind(b, db, Find{Filter: bson.Raw{14, 0, 0, 0, 16, '_', 'i', 'd', 0, byte(i), 0, 0, 0, 0}}, 1)
	}
}

func BenchmarkFindRange(b *testing.B) {
	db := benchDB(b)
	filter := doc(`{n: {$gte: 5000, $lt: 6000}}`)
	for range b.N {
		benchFind(b, db, Find{Filter: filter}, 1000)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/doc")
}

func BenchmarkScan(b *testing.B) {
	db := benchDB(b)
	filter := doc(`{a: 11, b: "3"}`)
	for range b.N {
		benchFind(b, db, Find{Filter: filter}, 0)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/20_000, "ns/doc")
}

func BenchmarkInsert(b *testing.B) {
	db := benchDB(b)
	var in []bson.Raw
	for i := range b.N {
		in = append(in, doc(fmt.Sprintf(`{_id: %d, n: %d}`, 100_000+i, i)))
	}
	b.ResetTimer()
	if r, err := db.Insert(context.Background(), ns, in, true); err != nil || r.N != b.N {
		b.Fatal(r, err)
	}
}

func BenchmarkUpdateByID(b *testing.B) {
	db := benchDB(b)
	u := []Update{{Filter: doc(`{_id: 77}`), Update: updateDoc(`{$inc: {n: 1}}`)}}
	for range b.N {
		if r, err := db.Update(context.Background(), ns, u, true); err != nil || r.Modified != 1 {
			b.Fatal(r, err)
		}
	}
}
