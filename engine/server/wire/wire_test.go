package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

func doc(t testing.TB, v any) []byte {
	t.Helper()
	b, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func message(op OpCode, body []byte) []byte {
	b := appendI32(nil, int32(headerSize+len(body)))
	b = appendI32(b, 7)
	b = appendI32(b, 0)
	b = appendI32(b, int32(op))
	return append(b, body...)
}

// msg builds an OP_MSG of the sections.
func msg(flags uint32, sections ...[]byte) []byte {
	body := binary.LittleEndian.AppendUint32(nil, flags)
	b := message(OpMsg, append(body, bytes.Join(sections, nil)...))
	if flags&flagChecksum != 0 {
		putI32(b, int32(len(b)+4))
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	}
	return b
}

func body(d []byte) []byte { return append([]byte{0}, d...) }

func sequence(name string, docs ...[]byte) []byte {
	b := append([]byte(name), 0)
	b = append(b, bytes.Join(docs, nil)...)
	return append(appendI32([]byte{1}, int32(len(b)+4)), b...)
}

func compress(m []byte, c Compressor) []byte {
	b := append([]byte(nil), m[12:16]...)
	b = appendI32(b, int32(len(m)-headerSize))
	b = append(b, byte(c))
	return message(OpCompressed, c.deflate(b, m[headerSize:]))
}

func query(ns string, docs ...[]byte) []byte {
	b := append([]byte{0, 0, 0, 0}, ns...)
	b = append(b, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff)
	return message(OpQuery, append(b, bytes.Join(docs, nil)...))
}

func TestReadGivesWhatWasSent(t *testing.T) {
	ping := doc(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
	a, b := doc(t, bson.D{{Key: "a", Value: 1}}), doc(t, bson.D{{Key: "b", Value: strings.Repeat("b", 5000)}})
	full := msg(flagChecksum|flagMoreToCome|flagExhaustAllowed, sequence("documents", a, b), body(ping), sequence("other"))
	stream := [][]byte{full, compress(full, Snappy), compress(full, Zlib), compress(full, Zstd), compress(full, None), full}
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r },
		"by byte": iotest.OneByteReader,
		"by half": iotest.HalfReader,
		"eof":     iotest.DataErrReader,
	} {
		r := NewReader(wrap(bytes.NewReader(bytes.Join(stream, nil))))
		for i := range stream {
			m, err := r.Read()
			if err != nil || m.Fault != nil {
				t.Fatalf("%s, message %d: %v, %v", name, i, err, m.Fault)
			}
			if m.RequestID != 7 || m.Op != OpMsg || !m.MoreToCome || !m.Exhaust || !m.Checksum || !bytes.Equal(m.Body, ping) {
				t.Errorf("%s, message %d: %+v", name, i, m)
			}
			if len(m.Sequences) != 2 || m.Sequences[0].Name != "documents" || m.Sequences[0].Count != 2 ||
				!bytes.Equal(m.Sequences[0].Docs, append(bytes.Clone(a), b...)) || m.Sequences[1].Count != 0 {
				t.Errorf("%s, message %d: sequences %+v", name, i, m.Sequences)
			}
		}
		if _, err := r.Read(); err != io.EOF {
			t.Errorf("%s: after the last message: %v", name, err)
		}
	}
}

func TestReadQuery(t *testing.T) {
	hello := doc(t, bson.D{{Key: "isMaster", Value: 1}})
	r := NewReader(bytes.NewReader(append(query("admin.$cmd", hello), query("admin.$cmd", hello, doc(t, bson.D{}))...)))
	for range 2 {
		m, err := r.Read()
		if err != nil || m.Fault != nil || m.Op != OpQuery || m.Namespace != "admin.$cmd" || !bytes.Equal(m.Body, hello) {
			t.Fatalf("%+v, %v", m, err)
		}
	}
}

func TestReadRefusesUnsoundFrames(t *testing.T) {
	ping := body(doc(t, bson.D{{Key: "ping", Value: 1}}))
	sound := msg(0, ping)
	patched := func(m []byte, at int, v int32) []byte {
		m = bytes.Clone(m)
		putI32(m[at:], v)
		return m
	}
	broken := msg(flagChecksum, ping)
	broken[len(broken)-6] ^= 1
	bomb := compress(sound, Zlib)
	for name, m := range map[string][]byte{
		"length 0":           patched(sound, 0, 0),
		"length 15":          patched(sound, 0, 15),
		"length negative":    patched(sound, 0, -1),
		"length over 48 MB":  patched(sound, 0, MessageSizeMax+1),
		"cut short":          sound[:len(sound)-1],
		"cut in the header":  sound[:9],
		"unknown code":       patched(sound, 12, 2013+1),
		"insert":             patched(sound, 12, 2002),
		"no flags":           message(OpMsg, nil),
		"checksum":           broken,
		"no checksum":        message(OpMsg, []byte{1, 0, 0, 0}),
		"query without head": message(OpQuery, []byte{0, 0, 0, 0, 'a', 'b'}),
		"query empty":        message(OpQuery, nil),
		"compressed empty":   message(OpCompressed, nil),
		"inflates to more":   patched(bomb, 20, int32(len(sound)-headerSize-1)),
		"inflates to less":   patched(bomb, 20, int32(len(sound)-headerSize+1)),
		"inflates to 48 MB":  patched(compress(sound, Snappy), 20, MessageSizeMax-headerSize),
		"inflates to -1":     patched(bomb, 20, -1),
		"inflates to 2 GB":   patched(compress(sound, Zstd), 20, 1<<31-1),
		"nested compression": patched(compress(compress(sound, Snappy), Zlib), 16, int32(OpCompressed)),
		"unknown compressor": compress(sound, 9),
		"snappy noise":       message(OpCompressed, append(appendI32(appendI32(nil, int32(OpMsg)), 100), append([]byte{1}, bytes.Repeat([]byte{0xfe}, 50)...)...)),
		"zlib noise":         message(OpCompressed, append(appendI32(appendI32(nil, int32(OpMsg)), 100), append([]byte{2}, bytes.Repeat([]byte{0xfe}, 50)...)...)),
		"zstd noise":         message(OpCompressed, append(appendI32(appendI32(nil, int32(OpMsg)), 100), append([]byte{3}, bytes.Repeat([]byte{0xfe}, 50)...)...)),
	} {
		if m, err := NewReader(bytes.NewReader(m)).Read(); err == nil || err == io.EOF {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func TestReadFindsFaults(t *testing.T) {
	ping := body(doc(t, bson.D{{Key: "ping", Value: 1}}))
	deep := doc(t, bson.D{})
	for range depthMax {
		deep = doc(t, bson.D{{Key: "a", Value: bson.Raw(deep)}})
	}
	large := bytes.Clone(ping)
	putI32(large[1:], documentSizeMax+1)
	many := [][]byte{ping}
	for i := range sequencesMax + 1 {
		many = append(many, sequence(string(rune('a'+i))))
	}
	faults := []struct {
		name string
		m    []byte
		code mongoerr.Code
	}{
		{"unknown flag", msg(1<<15, ping), mongoerr.IllegalOpMsgFlag},
		{"two bodies", msg(0, ping, ping), 40430},
		{"same sequence twice", msg(0, ping, sequence("a"), sequence("a")), 40431},
		{"unknown section", msg(0, ping, []byte{2}), 40432},
		{"no body", msg(0, sequence("documents")), 40587},
		{"no section", msg(0), 40587},
		{"many sequences", msg(0, many...), mongoerr.TooManyDocumentSequences},
		{"cut body", msg(0, ping[:len(ping)-1]), mongoerr.InvalidBSON},
		{"empty body", msg(0, []byte{0}), mongoerr.InvalidBSON},
		{"large body", msg(0, large), mongoerr.BSONObjectTooLarge},
		{"deep body", msg(0, body(deep)), mongoerr.InvalidBSON},
		{"sequence without length", msg(0, ping, []byte{1, 9}), mongoerr.InvalidBSON},
		{"sequence too long", msg(0, ping, []byte{1, 9, 0, 0, 0, 'a', 0}), mongoerr.InvalidBSON},
		{"sequence negative", msg(0, ping, []byte{1, 9, 0, 0, 0xff, 'a', 0}), mongoerr.InvalidBSON},
		{"sequence without end", msg(0, ping, []byte{1, 6, 0, 0, 0, 'a', 'b'}), mongoerr.InvalidBSON},
		{"sequence of noise", msg(0, ping, sequence("a", []byte{9, 0, 0, 0, 5, 6})), mongoerr.InvalidBSON},
		{"query of noise", query("a.$cmd", []byte{9}), mongoerr.InvalidBSON},
		{"query with a tail", query("a.$cmd", ping[1:], []byte{9}), mongoerr.InvalidBSON},
	}
	var stream []byte
	for _, f := range faults {
		stream = append(stream, f.m...)
	}
	r := NewReader(bytes.NewReader(stream))
	for _, f := range faults {
		m, err := r.Read()
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		if !mongoerr.Is(m.Fault, f.code) || m.RequestID != 7 {
			t.Errorf("%s: %v", f.name, m.Fault)
		}
	}
}

// What a client announces and does not send must cost nothing.
func TestReadAllocatesOnlyForWhatArrived(t *testing.T) {
	b := message(OpMsg, make([]byte, 100))
	putI32(b, MessageSizeMax)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := NewReader(bytes.NewReader(b)).Read(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / 100; got > 4*bufferStep {
		t.Errorf("a lying length cost %d bytes", got)
	}
}

func TestReaderGivesLargeBuffersBack(t *testing.T) {
	large := msg(0, body(doc(t, bson.D{{Key: "a", Value: strings.Repeat("x", 8<<20)}})))
	small := msg(0, body(doc(t, bson.D{{Key: "a", Value: 1}})))
	r := NewReader(bytes.NewReader(append(bytes.Join([][]byte{large, compress(large, Snappy)}, nil), small...)))
	for range 3 {
		if _, err := r.Read(); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.buf) > bufferKeep || cap(r.plain) > bufferKeep {
		t.Errorf("kept %d and %d bytes", len(r.buf), cap(r.plain))
	}
}

func TestReplyRoundTrip(t *testing.T) {
	ping := doc(t, bson.D{{Key: "ping", Value: 1}})
	answer := doc(t, bson.D{{Key: "ok", Value: 1.0}, {Key: "pad", Value: strings.Repeat("ab", 3000)}})
	var r Reply
	for _, c := range []Compressor{None, Snappy, Zlib, Zstd} {
		for _, flags := range []uint32{0, flagChecksum} {
			request := msg(flags, body(ping))
			if c != None {
				request = compress(request, c)
			}
			m, err := NewReader(bytes.NewReader(request)).Read()
			if err != nil {
				t.Fatal(err)
			}
			for _, squeeze := range []bool{false, true} {
				r.Begin(m, 99)
				r.Buf = append(r.Buf, "thrown away"...)
				r.Restart()
				r.Buf = append(r.Buf, answer...)
				out := r.End(squeeze)
				if responseTo := i32(out[8:]); responseTo != 7 {
					t.Errorf("%d: responseTo %d", c, responseTo)
				}
				back, err := NewReader(bytes.NewReader(out)).Read()
				if err != nil || back.Fault != nil {
					t.Fatalf("%d: %v, %v", c, err, back.Fault)
				}
				if back.RequestID != 99 || !bytes.Equal(back.Body, answer) || back.Checksum != (flags != 0) ||
					(back.Compressor != None) != (squeeze && c != None) {
					t.Errorf("%d: %+v", c, back)
				}
			}
		}
	}

	m, err := NewReader(bytes.NewReader(query("admin.$cmd", ping))).Read()
	if err != nil {
		t.Fatal(err)
	}
	r.Begin(m, 99)
	r.Buf = append(r.Buf, answer...)
	r.Fail()
	out := r.End(true)
	if int(i32(out)) != len(out) || i32(out[12:]) != 1 || out[16] != replyFlagQueryFailure|replyFlagAwaitCapable ||
		i32(out[32:]) != 1 || !bytes.Equal(out[replyHeadSize:], answer) {
		t.Errorf("OP_REPLY: %x", out[:replyHeadSize])
	}
}

// The driver's own checks and ours agree on what a document is, save where the driver is laxer.
func TestValidateAgreesWithTheDriver(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	dec, err := bson.ParseDecimal128("1.5")
	if err != nil {
		t.Fatal(err)
	}
	d := doc(t, bson.D{
		{Key: "double", Value: 1.5}, {Key: "string", Value: "s"}, {Key: "doc", Value: bson.D{{Key: "x", Value: bson.A{1, "a", nil}}}},
		{Key: "bin", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}, {Key: "old", Value: bson.Binary{Subtype: 2, Data: []byte("xy")}},
		{Key: "undefined", Value: bson.Undefined{}}, {Key: "oid", Value: bson.ObjectID{1}}, {Key: "bool", Value: true},
		{Key: "date", Value: bson.DateTime(5)}, {Key: "null", Value: nil}, {Key: "re", Value: bson.Regex{Pattern: "a", Options: "i"}},
		{Key: "ptr", Value: bson.DBPointer{DB: "db"}}, {Key: "js", Value: bson.JavaScript("f")}, {Key: "sym", Value: bson.Symbol("s")},
		{Key: "scope", Value: bson.CodeWithScope{Code: "f", Scope: bson.D{{Key: "a", Value: 1}}}}, {Key: "int", Value: int32(1)},
		{Key: "ts", Value: bson.Timestamp{T: 1}}, {Key: "long", Value: int64(1)}, {Key: "dec", Value: dec},
		{Key: "min", Value: bson.MinKey{}}, {Key: "max", Value: bson.MaxKey{}},
	})
	if n, err := Validate(append(bytes.Clone(d), 1, 2, 3)); err != nil || n != len(d) {
		t.Fatalf("%d, %v", n, err)
	}
	for i := range d {
		if _, err := Validate(d[:i]); err == nil {
			t.Errorf("the first %d bytes pass", i)
		}
	}
	for range 200_000 {
		m := bytes.Clone(d)
		for range 1 + rng.IntN(3) {
			m[rng.IntN(len(m))] = byte(rng.Uint32() >> rng.IntN(8))
		}
		n, err := Validate(m)
		if err == nil && bson.Raw(m[:n]).Validate() != nil {
			t.Fatalf("seed %d: passes, and the driver says %v: %x", seed, bson.Raw(m[:n]).Validate(), m)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	var d bson.D
	for i := range 20 {
		d = append(d, bson.E{Key: "field", Value: i}, bson.E{Key: "text", Value: "a value of some length"})
	}
	raw := doc(b, d)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := Validate(raw); err != nil {
			b.Fatal(err)
		}
	}
}
