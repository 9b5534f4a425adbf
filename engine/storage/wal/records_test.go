package wal

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// appendRecord is the inverse of the decoder.
func appendRecord(buf []byte, r Record) []byte {
	switch r.Type {
	case CreateCollection:
		return AppendCreateCollection(buf, r.Coll, r.Value)
	case DropCollection:
		return AppendDropCollection(buf, r.Coll)
	case SetDesc:
		return AppendSetDesc(buf, r.Coll, r.Value)
	case CreateTree:
		return AppendCreateTree(buf, r.Coll, r.Tree)
	case DropTree:
		return AppendDropTree(buf, r.Coll, r.Tree)
	case TreePut:
		return AppendTreePut(buf, r.Coll, r.Tree, r.Key, r.Value)
	case TreeDelete:
		return AppendTreeDelete(buf, r.Coll, r.Tree, r.Key)
	case RecordPut:
		return AppendRecordPut(buf, r.Coll, r.ID, r.Value)
	}
	return AppendRecordDelete(buf, r.Coll, r.ID)
}

func drawRecord(t *rapid.T) Record {
	r := Record{Type: RecordType(rapid.IntRange(1, 9).Draw(t, "type")), Coll: rapid.Uint32().Draw(t, "coll")}
	some := rapid.SliceOfN(rapid.Byte(), 0, 300)
	switch r.Type {
	case CreateCollection, SetDesc:
		r.Value = some.Draw(t, "desc")
	case CreateTree, DropTree:
		r.Tree = rapid.Uint32().Draw(t, "tree")
	case TreePut:
		r.Tree, r.Key, r.Value = rapid.Uint32().Draw(t, "tree"), some.Draw(t, "key"), some.Draw(t, "value")
	case TreeDelete:
		r.Tree, r.Key = rapid.Uint32().Draw(t, "tree"), some.Draw(t, "key")
	case RecordPut:
		r.ID, r.Value = rapid.Uint64().Draw(t, "id"), some.Draw(t, "document")
	case RecordDelete:
		r.ID = rapid.Uint64().Draw(t, "id")
	}
	return r
}

func TestRecordsComeBackAsAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(drawRecord), 0, 20).Draw(t, "records")
		var buf []byte
		for _, r := range want {
			at := len(buf)
			if buf = appendRecord(buf, r); nextRecord(buf[at:]) != len(buf)-at {
				t.Fatalf("%+v takes %d bytes and says %d", r, len(buf)-at, nextRecord(buf[at:]))
			}
		}
		d := NewDecoder(buf)
		for i, r := range want {
			if !d.Next() {
				t.Fatalf("record %d of %d: %v", i, len(want), d.Err())
			}
			got := d.Record()
			if got.Type != r.Type || got.Coll != r.Coll || got.Tree != r.Tree || got.ID != r.ID ||
				!bytes.Equal(got.Key, r.Key) || !bytes.Equal(got.Value, r.Value) {
				t.Fatalf("record %d: got %+v, want %+v", i, got, r)
			}
		}
		if d.Next() || d.Err() != nil {
			t.Fatalf("after the last record: %+v, %v", d.Record(), d.Err())
		}
	})
}

// The bytes are the format: a change of them needs another version.
func TestRecordBytesStay(t *testing.T) {
	var buf []byte
	buf = AppendCreateCollection(buf, 7, []byte("d"))
	buf = AppendTreePut(buf, 300, 1, []byte("key"), []byte("val"))
	buf = AppendRecordDelete(buf, 1, math.MaxUint64)
	want := []byte{3, 1, 7, 'd', 11, 6, 0xac, 2, 1, 3, 'k', 'e', 'y', 'v', 'a', 'l',
		12, 9, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}
	if !bytes.Equal(buf, want) {
		t.Errorf("got %v\nwant %v", buf, want)
	}
}

func TestDecoderRefusesWhatIsNoRecord(t *testing.T) {
	for _, c := range []struct {
		in   []byte
		want error
	}{
		{[]byte{5, 1, 7}, page.ErrCorrupt}, // size beyond the end
		{[]byte{0x80}, page.ErrCorrupt},    // size cut off
		{[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, page.ErrCorrupt}, // size overflows
		{[]byte{0}, page.ErrCorrupt},                                     // no type
		{[]byte{1, 0}, page.ErrCorrupt},                                  // type 0
		{[]byte{1, 99}, ErrUnknownRecord},                                // type of another version
		{[]byte{3, 2, 7, 0}, page.ErrCorrupt},                            // too much
		{[]byte{2, 4, 7}, page.ErrCorrupt},                               // too little
		{[]byte{7, 4, 0xff, 0xff, 0xff, 0xff, 0x1f, 1}, page.ErrCorrupt}, // collection above 2^32
		{[]byte{5, 6, 1, 1, 2, 'k'}, page.ErrCorrupt},                    // key beyond the end
		{append(AppendDropTree(nil, 1, 2), 14, 6, 1, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0), page.ErrCorrupt}, // key size overflows
	} {
		d := NewDecoder(c.in)
		for d.Next() {
		}
		if !errors.Is(d.Err(), c.want) {
			t.Errorf("%v: %v, want %v", c.in, d.Err(), c.want)
		}
		if d.Next() {
			t.Errorf("%v: goes on after an error", c.in)
		}
	}
}

func TestDecoderAllocatesNothing(t *testing.T) {
	var buf []byte
	for i := range 100 {
		buf = AppendTreePut(buf, uint32(i), 1, []byte("key"), make([]byte, i))
	}
	sum := 0
	if n := testing.AllocsPerRun(10, func() {
		d := Decoder{rest: buf}
		for d.Next() {
			sum += len(d.Record().Value)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHeaderComesBackAsEncoded(t *testing.T) {
	h := header{id: 9, epoch: 3<<32 | 77, first: 40960, size: 16384, previous: 2 << 32, begin: 4096, durable: 20480, proven: 5}
	b := make([]byte, unit)
	h.encode(b)
	got, err := decodeHeader(b, 9)
	if err != nil || got != h {
		t.Fatalf("got %+v, %v", got, err)
	}
	if _, err := decodeHeader(b, 8); !errors.Is(err, page.ErrCorrupt) {
		t.Errorf("as segment 8: %v", err)
	}
	for i := range segmentHeaderSize * 8 {
		b[i/8] ^= 1 << (i % 8)
		if _, err := decodeHeader(b, 9); !errors.Is(err, page.ErrCorrupt) {
			t.Errorf("bit %d flipped: %v", i, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

func TestBlockHeaderComesBackAsEncoded(t *testing.T) {
	h := header{id: 9, epoch: 3, first: 4096, size: 1 << 20}
	want := block{lsn: 8192, first: 4096, durable: 4096, proven: 7, previous: 5, raw: 10, stored: 10, flags: flagLast}
	b := make([]byte, unit)
	copy(b[blockHeaderSize:], "0123456789")
	want.encode(b, &h)
	got, ok := decodeBlock(b, &h, 8192)
	if !ok || !reflect.DeepEqual(got, want) || !verifyBlock(b, &got) {
		t.Fatalf("got %+v, %v", got, ok)
	}
	for i := range (blockHeaderSize + 10) * 8 {
		b[i/8] ^= 1 << (i % 8)
		if got, ok := decodeBlock(b, &h, 8192); ok && verifyBlock(b, &got) {
			t.Errorf("valid with bit %d flipped", i)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

func TestSegmentNames(t *testing.T) {
	for name, want := range map[string]uint64{"wal-1": 1, "wal-9223372036854775807": math.MaxInt64} {
		if id, ok := segmentID(name); !ok || id != want || segmentName(id) != name {
			t.Errorf("%s: %d, %v", name, id, ok)
		}
	}
	for _, name := range []string{"wal-", "wal-01", "wal-new", "wal-1.bak", "wal--1", "wal-9223372036854775808", "data", "xwal-1"} {
		if id, ok := segmentID(name); ok {
			t.Errorf("%s is segment %d", name, id)
		}
	}
}
