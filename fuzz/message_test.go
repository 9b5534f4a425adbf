package fuzz

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/server/wire"
)

// FuzzMessage reads a client's bytes as the server does. It must never panic, never allocate more than a small multiple of
// what arrived (a compressed message may claim what its compressor can reach, and 48 MB at most), and what it lets through must be
// documents that the driver's walker agrees with.
func FuzzMessage(f *testing.F) {
	for _, seed := range messageSeeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		allowed := uint64(64<<10 + 16*len(data))
		for at := 0; at+25 <= len(data); at++ {
			// Wherever a compressed message might begin; its coders have state of their own.
			if binary.LittleEndian.Uint32(data[at+12:]) == uint32(wire.OpCompressed) {
				allowed += 20 << 20
				if claim := binary.LittleEndian.Uint32(data[at+20:]); claim <= wire.MessageSizeMax {
					allowed += 2 * uint64(claim)
				}
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := wire.NewReader(bytes.NewReader(data))
		for {
			m, err := r.Read()
			if err != nil {
				break
			}
			if m.Fault == nil {
				checkMessage(t, m)
			}
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > allowed {
			t.Errorf("%d bytes of input cost %d bytes of memory, %d are allowed", len(data), got, allowed)
		}
	})
}

func checkMessage(t *testing.T, m *wire.Message) {
	if err := bson.Raw(m.Body).Validate(); err != nil {
		t.Errorf("a body passed, and the driver says %v", err)
	}
	for _, s := range m.Sequences {
		docs := s.Docs
		for range s.Count {
			n := binary.LittleEndian.Uint32(docs)
			if err := bson.Raw(docs[:n]).Validate(); err != nil {
				t.Errorf("a document passed, and the driver says %v", err)
			}
			docs = docs[n:]
		}
		if len(docs) != 0 {
			t.Errorf("%d bytes follow the last document of a sequence", len(docs))
		}
	}
}

// messageSeeds are an OP_MSG of each kind, an OP_QUERY, and each of them compressed.
func messageSeeds(f *testing.F) [][]byte {
	doc := func(v any) []byte {
		b, err := bson.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	u32 := binary.LittleEndian.AppendUint32
	frame := func(op wire.OpCode, body []byte) []byte {
		b := u32(u32(u32(u32(nil, uint32(16+len(body))), 1), 0), uint32(op))
		return append(b, body...)
	}
	ping := doc(bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
	body := append([]byte{0, 0, 0, 0, 0}, ping...)
	docs := append(append([]byte("documents"), 0), doc(bson.D{{Key: "a", Value: bson.A{1, "x", nil, bson.D{}}}})...)
	insert := append(bytes.Clone(body), 1)
	insert = append(u32(insert, uint32(len(docs)+4)), docs...)

	summed := append([]byte{1, 0, 0, 0, 0}, ping...)
	checked := frame(wire.OpMsg, append(summed, 0, 0, 0, 0))
	end := len(checked) - 4
	binary.LittleEndian.PutUint32(checked[end:], crc32.Checksum(checked[:end], crc32.MakeTable(crc32.Castagnoli)))

	query := append([]byte{0, 0, 0, 0}, "admin.$cmd\x00\x00\x00\x00\x00\xff\xff\xff\xff"...)
	seeds := [][]byte{frame(wire.OpMsg, body), frame(wire.OpMsg, insert), checked, frame(wire.OpQuery, append(query, ping...))}
	var reply wire.Reply
	for _, c := range []wire.Compressor{wire.None, wire.Snappy, wire.Zlib, wire.Zstd} {
		// A reply is an OP_MSG as well.
		reply.Begin(&wire.Message{Op: wire.OpMsg, Checksum: true, Compressor: c}, 5)
		reply.Buf = append(reply.Buf, ping...)
		seeds = append(seeds, bytes.Clone(reply.End(true)))
	}
	return append(seeds, bytes.Join(seeds, nil))
}
