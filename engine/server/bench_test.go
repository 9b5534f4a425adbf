package server_test

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine"
	"github.com/multiforadb/multiforadb/engine/server"
	"github.com/multiforadb/multiforadb/engine/server/wire"
)

// request is an OP_MSG: a reply has the same bytes.
func request(b *testing.B, cmd bson.D) []byte {
	doc, err := bson.Marshal(cmd)
	if err != nil {
		b.Fatal(err)
	}
	var r wire.Reply
	r.Begin(&wire.Message{Op: wire.OpMsg}, 1)
	r.Buf = append(r.Buf, doc...)
	return bytes.Clone(r.End(false))
}

func ask(b *testing.B, nc net.Conn, r *wire.Reader, request []byte) bson.Raw {
	if _, err := nc.Write(request); err != nil {
		b.Fatal(err)
	}
	m, err := r.Read()
	if err != nil {
		b.Fatal(err)
	}
	if ok := bson.Raw(m.Body).Lookup("ok").Double(); ok != 1 {
		b.Fatalf("%s", bson.Raw(m.Body))
	}
	return m.Body
}

// BenchmarkCommands measures commands from socket to disk and back, without a driver.
func BenchmarkCommands(b *testing.B) {
	db, err := engine.Open(b.TempDir(), engine.Options{TTLSweep: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	srv := server.New(db, server.Options{})
	defer srv.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go srv.Serve(l)
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	r := wire.NewReader(nc)

	load := func(coll string, n, size int) {
		for done := 0; done < n; {
			var docs bson.A
			for ; done < n && len(docs) < 500; done++ {
				docs = append(docs, bson.D{{Key: "_id", Value: done}, {Key: "pad", Value: strings.Repeat("x", size)}})
			}
			ask(b, nc, r, request(b, bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: docs}, {Key: "$db", Value: "test"}}))
		}
	}
	load("small", 20_000, 180)
	load("large", 1000, 16_000)
	for _, x := range []struct {
		name  string
		bytes int64
		cmd   bson.D
	}{
		{"ping", 0, bson.D{{Key: "ping", Value: 1}}},
		{"findOne", 0, bson.D{{Key: "find", Value: "small"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: 777}}}, {Key: "limit", Value: 1}, {Key: "singleBatch", Value: true}}},
		{"scan small", 20_000 * 200, bson.D{{Key: "find", Value: "small"}, {Key: "batchSize", Value: 1 << 30}}},
		{"scan large", 1000 * 16_020, bson.D{{Key: "find", Value: "large"}, {Key: "batchSize", Value: 1 << 30}}},
		{"insertOne", 0, bson.D{{Key: "insert", Value: "new"}, {Key: "documents", Value: bson.A{bson.D{{Key: "pad", Value: strings.Repeat("x", 180)}}}}}},
	} {
		req := request(b, append(x.cmd, bson.E{Key: "$db", Value: "test"}))
		b.Run(x.name, func(b *testing.B) {
			b.SetBytes(x.bytes)
			b.ReportAllocs()
			for b.Loop() {
				ask(b, nc, r, req)
			}
		})
	}
}
