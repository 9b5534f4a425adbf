// Package collation orders text as people of a language do: Parse reads MongoDB's collation documents, {locale: "de", strength: 2}, and
// a Collation compares text, or turns it into keys whose bytes order as the text shall.
//
// The order itself is that of golang.org/x/text/collate, which holds the tables of the Unicode Common Locale Data Repository. What it
// cannot do is done here, on the levels of its keys: case levels, upper case first, and the last two strengths. What neither can do is
// refused, never ignored.
//
// # Keys
//
// A key is the levels of the strength, one after the other, each with zeros in front that are below all that a level holds:
//
//	primaries  [00 00 secondaries]  [00 00 case level]  [00 00 tertiaries]  [00 quaternaries]  [00 decomposed text]
//
// Two texts are equal if and only if their keys are; every comparison goes by the keys, so that a scan, a sort and an index agree.
//
// Text that is no valid UTF-8 is ordered as if its broken bytes were replacement characters.
package collation

import (
	"bytes"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// Collation is a parsed collation. It is immutable and safe for concurrent use; nil is the order of the bytes.
type Collation struct {
	spec   bson.Raw
	tag    language.Tag // with the levels that are asked of the library
	tag4   language.Tag
	fields fields
	free   [workersKept]atomic.Pointer[worker]
}

// workersKept is how many workers of a collation are kept for the next call: about as many as there are processors to run them.
const workersKept = 8

// worker makes keys. It belongs to one goroutine at a time.
type worker struct {
	main   *collate.Collator
	buf    collate.Buffer
	fourth *collate.Collator // with the fourth level; nil if there is none
	buf4   collate.Buffer
	nfd    []byte
}

// Raw is the collation as it is kept and shown: all fields, with what they are where the client said nothing. Nil is nil.
func (c *Collation) Raw() bson.Raw {
	if c == nil {
		return nil
	}
	return c.spec
}

// Spec is the document that Parse makes c of, for nil, too.
func (c *Collation) Spec() bson.Raw {
	if c == nil {
		return bson.Raw(bsoncore.NewDocumentBuilder().AppendString("locale", "simple").Build())
	}
	return c.spec
}

// Same says whether two collations, each of which may be nil, are the same order.
func Same(a, b *Collation) bool { return bytes.Equal(a.Raw(), b.Raw()) }

// Compare is negative, zero or positive as a is before, the same as, or after b.
func (c *Collation) Compare(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	var room [256]byte
	k := c.AppendKey(room[:0], a)
	n := len(k)
	k = c.AppendKey(k, b)
	return bytes.Compare(k[:n], k[n:])
}

// AppendKey appends the key of text.
func (c *Collation) AppendKey(dst, text []byte) []byte {
	w := c.take()
	dst = c.appendKey(w, dst, text)
	c.give(w)
	return dst
}

func (c *Collation) take() *worker {
	for i := range c.free {
		if w := c.free[i].Swap(nil); w != nil {
			return w
		}
	}
	return c.newWorker()
}

func (c *Collation) give(w *worker) {
	for i := range c.free {
		if c.free[i].CompareAndSwap(nil, w) {
			return
		}
	}
}

func (c *Collation) newWorker() *worker {
	var options []collate.Option
	if c.fields.numericOrdering {
		options = append(options, collate.Numeric)
	}
	w := &worker{main: collate.New(c.tag, options...)}
	if c.fields.strength >= quaternary && c.fields.shifted {
		w.fourth = collate.New(c.tag4, options...)
	}
	return w
}

func (c *Collation) appendKey(w *worker, dst, text []byte) []byte {
	f := &c.fields
	w.buf.Reset()
	k := w.main.Key(&w.buf, text)
	switch {
	case f.caseLevel && f.strength == primary:
		at, _ := cut(k)
		dst = append(append(dst, k[:at-len(separator)]...), separator...)
		dst = c.appendCases(w, dst, text)
	case f.caseLevel || f.caseFirst != caseOff:
		at, third := cut(k)
		dst = append(dst, k[:at]...)
		if f.caseLevel {
			dst = append(dst, separator...)
			for _, t := range third {
				dst = append(dst, f.caseByte(t))
			}
		}
		if f.strength >= tertiary {
			dst = append(dst, separator...)
			for _, t := range third {
				dst = append(dst, f.third(t))
			}
		}
	default:
		dst = append(dst, k...)
	}
	if w.fourth != nil {
		n := len(k)
		w.buf4.Reset()
		dst = append(dst, w.fourth.Key(&w.buf4, text)[n:]...)
	}
	if f.strength == identical {
		w.nfd = norm.NFD.Append(w.nfd[:0], text...)
		dst = append(append(dst, 0), w.nfd...)
	}
	return dst
}

// cut finds the third level, which is a key's last and holds no zeros, and the separator in front of it.
func cut(k []byte) (at int, third []byte) {
	at = bytes.LastIndex(k, separator)
	return at, k[at+len(separator):]
}

var separator = []byte{0, 0}

// caseByte is what the case level holds of a character whose weight on the third level is t.
func (f *fields) caseByte(t byte) byte {
	if upper(t) != (f.caseFirst == caseUpper) {
		return 2
	}
	return 1
}

// third is t with its case in front of everything else, if case is to decide first.
func (f *fields) third(t byte) byte {
	if f.caseFirst != caseOff && f.caseByte(t) == 2 {
		return t | 0x40
	}
	return t
}

// upper says whether a weight of the third level is one of capitals. Kana of full size count as capitals of the small ones.
func upper(t byte) bool {
	return t >= 0x08 && t <= 0x0c || t == 0x0e || t == 0x11 || t == 0x12 || t == 0x1d
}

// appendCases appends the case level where only base characters count: an accent has a weight on the third level, too, and must leave no
// trace. A key does not tell whose weight is whose, so it is asked for each character with its marks. Between the primaries and the
// third level such a key has two separators.
func (c *Collation) appendCases(w *worker, dst, text []byte) []byte {
	w.nfd = norm.NFD.Append(w.nfd[:0], text...)
	for rest := w.nfd; len(rest) > 0; {
		_, n := utf8.DecodeRune(rest)
		for n < len(rest) {
			r, size := utf8.DecodeRune(rest[n:])
			if !unicode.Is(unicode.M, r) {
				break
			}
			n += size
		}
		w.buf.Reset()
		k := w.main.Key(&w.buf, rest[:n])
		rest = rest[n:]
		at, third := cut(k)
		b := c.fields.caseByte(0)
		for _, t := range third {
			if upper(t) {
				b = c.fields.caseByte(t)
			}
		}
		for p := 0; p < at-len(separator); p += 2 {
			if k[p] >= 0x80 {
				p++ // a weight of three bytes
			}
			dst = append(dst, b)
		}
	}
	return dst
}
