package fuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/wal"
	"github.com/multiforadb/multiforadb/simfs"
)

// logUnit is the unit of the log's format: headers take one, blocks begin at multiples.
const logUnit = 4096

// FuzzLogDecode opens a log of arbitrary segment files, and reads arbitrary bytes as records. Neither may panic, or allocate
// much more than it was given. A log that recovers must stay the same through Accept, another batch and a power cut.
//
// log is a sequence of files, each: number, count of units of 4096 bytes, and for each unit n (two bytes, little endian) and n
// bytes, which zeros follow. With seal the checksums of all that looks like a header or a block are made right first, so that
// what lies behind them is reached.
func FuzzLogDecode(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(seed%2 == 0, uint16(0), packLog(f, seed), wal.AppendTreePut(nil, 1, 2, []byte("key"), []byte("value")))
	}
	f.Fuzz(func(t *testing.T, seal bool, from uint16, log, records []byte) {
		readRecords(t, records)
		d := simfs.New(simfs.Options{Forgetful: true})
		total := unpackLog(t, d, log, seal)
		openLog(t, d, wal.LSN(from)*logUnit, total)
	})
}

// readRecords decodes records and encodes them again: what is valid comes back, if perhaps in fewer bytes.
func readRecords(t *testing.T, records []byte) {
	d := wal.NewDecoder(records)
	for d.Next() {
		r := d.Record()
		if len(r.Key)+len(r.Value) > len(records) {
			t.Fatalf("%+v from %d bytes", r, len(records))
		}
		again := wal.NewDecoder(encodeRecord(r))
		if !again.Next() {
			t.Fatalf("%+v, encoded again: %v", r, again.Err())
		}
		if s := again.Record(); fmt.Sprint(s) != fmt.Sprint(r) {
			t.Fatalf("%+v, encoded again: %+v", r, s)
		}
	}
	if err := d.Err(); err != nil && !errors.Is(err, page.ErrCorrupt) && !errors.Is(err, wal.ErrUnknownRecord) {
		t.Fatalf("the error is of no known kind: %v", err)
	}
}

func encodeRecord(r wal.Record) []byte {
	switch r.Type {
	case wal.CreateCollection:
		return wal.AppendCreateCollection(nil, r.Coll, r.Value)
	case wal.DropCollection:
		return wal.AppendDropCollection(nil, r.Coll)
	case wal.SetDesc:
		return wal.AppendSetDesc(nil, r.Coll, r.Value)
	case wal.CreateTree:
		return wal.AppendCreateTree(nil, r.Coll, r.Tree)
	case wal.DropTree:
		return wal.AppendDropTree(nil, r.Coll, r.Tree)
	case wal.TreePut:
		return wal.AppendTreePut(nil, r.Coll, r.Tree, r.Key, r.Value)
	case wal.TreeDelete:
		return wal.AppendTreeDelete(nil, r.Coll, r.Tree, r.Key)
	case wal.RecordPut:
		return wal.AppendRecordPut(nil, r.Coll, r.ID, r.Value)
	}
	return wal.AppendRecordDelete(nil, r.Coll, r.ID)
}

// openLog recovers the log in /db, which has total bytes, as a database with a checkpoint at from would.
func openLog(t *testing.T, d *simfs.FS, from wal.LSN, total int) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	end, batches, l, err := recoverLog(d, from)
	runtime.ReadMemStats(&after)
	// LZ4 blocks may hold 255 times their size, and a buffer grows by doubling.
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20+uint64(total)*1024 {
		t.Fatalf("%d bytes allocated to read %d", n, total)
	}
	if err != nil {
		if !errors.Is(err, page.ErrCorrupt) && !isVersion(err) {
			t.Fatalf("the error is of no known kind: %v", err)
		}
		return
	}
	if err := l.Accept(); err != nil {
		t.Fatalf("accept: %v", err)
	}
	batch := wal.AppendRecordPut(nil, 1, 1, bytes.Repeat([]byte("life goes on "), 1000))
	newEnd, err := l.Append([][]byte{batch}, 7)
	if err == nil {
		err = l.Sync()
	}
	if err != nil || newEnd <= end {
		t.Fatalf("append at LSN %d: %d, %v", end, newEnd, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	end2, batches2, l, err := recoverLog(d.Crash(simfs.Choice{Gen: simfs.DropAll}), from)
	if err != nil {
		t.Fatalf("second recovery: %v", err)
	}
	defer l.Close()
	if end2 != newEnd || !bytes.Equal(batches2, append(batches, batch...)) {
		t.Fatalf("the log ended at LSN %d with %d bytes; after another batch of %d at %d with %d", end, len(batches), len(batch), end2, len(batches2))
	}
}

// recoverLog opens the log and gives its end and all its records.
func recoverLog(d *simfs.FS, from wal.LSN) (end wal.LSN, records []byte, l *wal.Log, err error) {
	l, err = wal.Open(d.Env(1), "/db", wal.Options{SegmentSize: 4 * logUnit, BlockSize: 2 * logUnit})
	if err != nil {
		return 0, nil, nil, err
	}
	if end, err = l.Recover(from, from); err == nil {
		err = l.Replay(from, func(_ wal.LSN, _ bool, part []byte) error {
			if len(records)+len(part) < 1<<20 {
				records = append(records, part...)
			}
			return nil
		})
	}
	if err != nil {
		l.Close()
	}
	return end, records, l, err
}

// isVersion: a header with a right checksum may be of a version that does not exist.
func isVersion(err error) bool {
	return bytes.Contains([]byte(err.Error()), []byte("unsupported version"))
}

// unpackLog makes the files that log describes, and gives the sum of their sizes.
func unpackLog(t *testing.T, d *simfs.FS, log []byte, seal bool) (total int) {
	if err := d.Mkdir("/db"); err != nil {
		t.Fatal(err)
	}
	for len(log) >= 4 && total < 64*logUnit {
		id, units := log[0], int(log[1]%8)
		log = log[2:]
		b := make([]byte, units*logUnit)
		for u := 0; u < units && len(log) >= 2; u++ {
			n := min(int(binary.LittleEndian.Uint16(log)), len(log)-2, logUnit)
			copy(b[u*logUnit:], log[2:2+n])
			log = log[2+n:]
		}
		if seal {
			sealLog(b)
		}
		total += len(b)
		f, err := d.Open(fmt.Sprintf("/db/wal-%d", id), env.OpenCreate)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(b, 0); err != nil && len(b) > 0 {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return total
}

// sealLog computes the checksums anew: of the header, whose sum covers 80 bytes, and of blocks, whose payload is 72 bytes
// behind their beginning and as long as the number at 64 says.
func sealLog(b []byte) {
	le := binary.LittleEndian
	if len(b) < logUnit {
		return
	}
	le.PutUint32(b, page.Checksum(b[4:80]))
	for at := logUnit; at < len(b); {
		blk := b[at:]
		size := 72 + int64(le.Uint32(blk[64:]))
		if string(blk[4:8]) != "MFWB" || size > int64(len(blk)) {
			at += logUnit
			continue
		}
		le.PutUint32(blk, page.Checksum(blk[4:size]))
		at += int(size+logUnit-1) &^ (logUnit - 1)
	}
}

// packLog writes a small log of two epochs and packs its files.
func packLog(f *testing.F, seed uint64) (packed []byte) {
	d := simfs.New(simfs.Options{})
	rnd := rand.New(rand.NewPCG(seed, 1))
	must := func(err error) {
		if err != nil {
			f.Fatal(err)
		}
	}
	must(d.Mkdir("/db"))
	for range 2 {
		_, _, l, err := recoverLog(d, 0)
		must(err)
		must(l.Accept())
		for range 3 {
			doc := bytes.Repeat([]byte{byte(rnd.Uint32())}, 100+rnd.IntN(2)*10000)
			_, err := l.Append([][]byte{wal.AppendRecordPut(nil, 1, rnd.Uint64N(100), doc)}, 1)
			must(err)
			must(l.Sync())
		}
		must(l.Close())
	}
	names, err := d.List("/db")
	must(err)
	for _, name := range names {
		var id byte
		_, err := fmt.Sscanf(name, "wal-%d", &id)
		must(err)
		file, err := d.Open("/db/"+name, env.OpenReadOnly)
		must(err)
		size, err := file.Size()
		must(err)
		b := make([]byte, size)
		_, err = file.ReadAt(b, 0)
		must(err)
		must(file.Close())
		packed = append(packed, id, byte(size/logUnit))
		for ; len(b) > 0; b = b[logUnit:] {
			u := bytes.TrimRight(b[:logUnit], "\x00")
			packed = append(binary.LittleEndian.AppendUint16(packed, uint16(len(u))), u...)
		}
	}
	return packed
}
