package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

const (
	kValues = 1000      // field k of document n is n modulo this
	pValues = 1_000_000 // field p is spread over 0 … this, one value a document
)

// maker makes documents {_id: n, k: …, p: …, pad: text} of one size. Text is words that are drawn like those of a language, so
// that it can be compressed as documents can (limits say how far); documents share no longer parts.
type maker struct {
	size int
	text string
}

// documentMin is the size of a document with an empty pad.
const documentMin = 4 + 13 + 11 + 11 + 10 + 1

func newMaker(n size) (*maker, error) {
	if n < documentMin || n > 16<<20 {
		return nil, fmt.Errorf("documents of %d bytes: there are such from %d bytes to 16 MiB", n, documentMin)
	}
	m := &maker{int(n), text()}
	if 2*m.size > len(m.text) {
		m.text = words(2 * m.size)
	}
	return m, nil
}

// doc makes document number id; the same number gives the same fields, and rng chooses the text.
func (m *maker) doc(id int64, rng *rand.Rand) bson.Raw {
	at, b := bsoncore.AppendDocumentStart(make([]byte, 0, m.size))
	b = bsoncore.AppendInt64Element(b, "_id", id)
	b = bsoncore.AppendInt64Element(b, "k", id%kValues)
	b = bsoncore.AppendInt64Element(b, "p", id*2_654_435_761%pValues)
	b = bsoncore.AppendStringElement(b, "pad", m.pad(rng))
	b, _ = bsoncore.AppendDocumentEnd(b, at)
	return b
}

// pad is text that makes a document m.size bytes long.
func (m *maker) pad(rng *rand.Rand) string {
	n := m.size - documentMin
	if n <= 0 {
		return ""
	}
	from := rng.IntN(len(m.text) - n)
	return m.text[from : from+n]
}

// textSize is much more than a compressor looks back.
const textSize = 4 << 20

// text is made once.
var text = sync.OnceValue(func() string { return words(textSize) })

// words are n bytes of text: words of a made-up vocabulary, the common ones often.
func words(n int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	vocabulary := make([]string, 4000)
	for i := range vocabulary {
		w := make([]byte, 2+rng.IntN(9))
		for j := range w {
			w[j] = 'a' + byte(rng.IntN(26))
		}
		vocabulary[i] = string(w)
	}
	var b strings.Builder
	for b.Len() < n {
		// Rank r comes about as often as 1/r.
		b.WriteString(vocabulary[int(math.Exp(rng.Float64()*math.Log(float64(len(vocabulary)))))-1])
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

func newRand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
