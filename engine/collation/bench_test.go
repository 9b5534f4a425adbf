package collation

import (
	"testing"

	"github.com/multiforadb/multiforadb/engine/value"
)

func BenchmarkKey(b *testing.B) {
	c, err := Parse(value.MustParseDocument(`{locale: "en", strength: 2}`))
	if err != nil {
		b.Fatal(err)
	}
	text := []byte("The quick brown fox jumps")
	var key []byte
	b.ReportAllocs()
	for b.Loop() {
		key = c.AppendKey(key[:0], text)
	}
	b.SetBytes(int64(len(text)))
}
