package fuzz

import (
	"bytes"
	"encoding/binary"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/key"
	"github.com/multiforadb/multiforadb/engine/value"
	"github.com/multiforadb/multiforadb/engine/value/generate"
)

var keyPatterns = []string{"{a: 1}", "{a: -1}", "{a: 1, b: 1}", "{a: -1, b: 1}", "{a: 1, b: -1, c: 1}",
	"{'a.b': 1, c: -1}", "{'a.0': 1, 'a.b': -1}", "{b: 'hashed', a: 1}"}

// FuzzKeyOrder checks that the order of keys is the order of values, on two documents and a pattern. The first byte chooses the
// pattern. The rest is two BSON documents, if it is that, and otherwise the choices of a generator of documents.
func FuzzKeyOrder(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 1<<12 {
			return
		}
		p, err := key.ParsePattern(value.MustParseDocument(keyPatterns[int(data[0])%len(keyPatterns)]))
		if err != nil {
			t.Fatal(err)
		}
		a, b, ok := twoDocuments(data[1:])
		if !ok {
			s := generate.Bytes(data[1:])
			a, b = s.Document(4), s.Document(4)
			if value.Validate(a) != nil || value.Validate(b) != nil {
				t.Fatalf("the generator made an invalid document: % x, % x", a, b)
			}
		}
		checkOrder(t, value.Document(a), value.Document(b))
		for ia, ib := value.Elements(a), value.Elements(b); ia.Next() && ib.Next(); {
			checkOrder(t, ia.Value(), ib.Value())
		}

		var sa, sb key.Set
		if p.Keys(&sa, a) != nil || p.Keys(&sb, b) != nil {
			return
		}
		for i := range sa.Len() {
			if i > 0 && bytes.Compare(sa.Key(i-1), sa.Key(i)) >= 0 {
				t.Fatalf("keys of %s are not sorted", value.Text(value.Document(a)))
			}
			va, err := p.Decode(nil, sa.Key(i), sa.Trailer(i))
			if err != nil {
				t.Fatalf("key % x of %s: %v", sa.Key(i), value.Text(value.Document(a)), err)
			}
			for j := range sb.Len() {
				vb, err := p.Decode(nil, sb.Key(j), sb.Trailer(j))
				if err != nil {
					t.Fatal(err)
				}
				if got, want := bytes.Compare(sa.Key(i), sb.Key(j)), compareFields(p, va, vb); got != want {
					t.Fatalf("%s: keys % x and % x compare as %d, their values as %d", p.Name(), sa.Key(i), sb.Key(j), got, want)
				}
			}
		}
	})
}

func checkOrder(t *testing.T, a, b bson.RawValue) {
	ka, kb := key.Append(nil, a), key.Append(nil, b)
	c := value.Compare(a, b)
	if bytes.Compare(ka, kb) != c || value.Compare(b, a) != -c {
		t.Fatalf("%s and %s compare as %d, their keys % x and % x as %d", value.Text(a), value.Text(b), c, ka, kb, bytes.Compare(ka, kb))
	}
	if c == 0 && value.Hash(3, a) != value.Hash(3, b) {
		t.Fatalf("%s and %s are equal and have different hashes", value.Text(a), value.Text(b))
	}
	if c != 0 && (bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka)) {
		t.Fatalf("the key of one is a prefix of the other's: %s and %s", value.Text(a), value.Text(b))
	}
}

func compareFields(p key.Pattern, a, b []bson.RawValue) int {
	for i, f := range p.Fields {
		x, y := a[i], b[i]
		if x.Type == 0 {
			x = value.Null
		}
		if y.Type == 0 {
			y = value.Null
		}
		if c := value.Compare(x, y); c != 0 {
			if f.Kind == key.Descending {
				c = -c
			}
			return c
		}
	}
	return 0
}

func twoDocuments(data []byte) (a, b bson.Raw, ok bool) {
	if len(data) < 10 {
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint32(data)
	if n > uint32(len(data)) {
		return nil, nil, false
	}
	a, b = data[:n], data[n:]
	return a, b, value.Validate(a) == nil && value.Validate(b) == nil
}
