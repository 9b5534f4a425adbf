package fuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/simfs"
)

// FuzzPageDecode reads what the disk may hold: page headers, meta pages, and whole data files that have been tampered with
// and sealed again. Nothing panics, nothing takes memory that the file does not justify, and what is let through is sound.
func FuzzPageDecode(f *testing.F) {
	sealed := make([]byte, page.Size)
	page.Init(sealed, page.TypeLeaf, 0, 77, 5)
	page.Seal(sealed)
	f.Add(byte(0), uint64(page.MakeRef(77, 5)), sealed)
	f.Add(byte(0), uint64(77), []byte{})
	f.Add(byte(1), uint64(0), metaSlot(0, 4, nil))
	f.Add(byte(1), uint64(1), metaSlot(0, 4, nil))
	f.Add(byte(2), uint64(0), []byte{})
	f.Add(byte(2), uint64(0), []byte{0, 0, 72, 0xff})
	f.Add(byte(2), uint64(0), []byte{0, 0x10, 72, 3, 2, 0, 9, 1})
	f.Add(byte(2), uint64(20), []byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, kind byte, number uint64, data []byte) {
		switch kind % 3 {
		case 0:
			fuzzHeader(t, page.Ref(number), data)
		case 1:
			fuzzMeta(t, page.ID(number&1), data)
		case 2:
			fuzzFile(t, number, data)
		}
	})
}

func padded(data []byte) []byte {
	b := make([]byte, page.Size)
	copy(b, data)
	return b
}

func fuzzHeader(t *testing.T, ref page.Ref, data []byte) {
	b := padded(data)
	whole := binary.LittleEndian.Uint32(b) == page.Checksum(b[4:])
	err := page.Verify(b, ref)
	if (err == nil) != (whole && page.IDOf(b) == ref.ID() && ref.Matches(page.BirthOf(b))) {
		t.Fatalf("page %d, born %d, whole %v, by reference %v: %v", page.IDOf(b), page.BirthOf(b), whole, ref, err)
	}
	if err != nil && !errors.Is(err, page.ErrCorrupt) {
		t.Fatal(err)
	}
	// Any content can be sealed, and is then told from any other.
	page.Seal(b)
	own := page.MakeRef(page.IDOf(b), page.BirthOf(b))
	if err := page.Verify(b, own); (err == nil) != (page.IDOf(b) == own.ID()) {
		t.Fatalf("sealed, by %v: %v", own, err)
	}
	b[uint64(ref)%page.Size] ^= byte(1 << (len(data) % 8))
	if page.Verify(b, own) == nil {
		t.Fatalf("one bit of byte %d changed", uint64(ref)%page.Size)
	}
}

func fuzzMeta(t *testing.T, slot page.ID, data []byte) {
	for _, b := range [][]byte{data, padded(data), resealMeta(padded(data))} {
		m, err := page.DecodeMeta(b, slot)
		switch {
		case err == nil:
			if !bytes.Equal(m.Encode(), b) {
				t.Fatalf("%+v: encoded again, it is another page", m)
			}
		case !errors.Is(err, page.ErrCorrupt) && !errors.Is(err, page.ErrVersion):
			t.Fatal(err)
		}
	}
}

// fuzzFile overwrites bytes of a small data file (two bytes say where, counted in a part of it, two what), seals both metas
// again, and opens it.
func fuzzFile(t *testing.T, proven uint64, patches []byte) {
	image := bytes.Clone(smallFile())
	for ; len(patches) >= 4; patches = patches[4:] {
		at := int(binary.LittleEndian.Uint16(patches)) % len(image)
		image[at] = patches[2]
		if at+1 < len(image) {
			image[at+1] ^= patches[3]
		}
	}
	resealMeta(image[:page.Size])
	resealMeta(image[page.Size : 2*page.Size])
	e := simfs.Memory()
	file, err := e.FS.Open(dataFile, env.OpenCreate)
	if err == nil {
		_, err = file.WriteAt(image, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, c, err := openPages(e, file, proven)
	if err != nil {
		if !errors.Is(err, page.ErrCorrupt) && !errors.Is(err, page.ErrVersion) {
			t.Fatal(err)
		}
		return
	}
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
	tk, err := a.Reserve(page.Request{Pages: 10, Runs: []uint32{16}})
	if errors.Is(err, env.ErrNoSpace) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	id, _ := tk.Page()
	if a.Reached(page.Run{First: id, Count: 1}) {
		t.Fatalf("page %d handed out, which a meta reaches", id)
	}
	a.Stage([]page.Run{{First: id, Count: 1}}, nil)
	m := c.Chosen
	m.Generation = c.Next
	if err := a.WriteBitmaps(&m); err != nil {
		t.Fatal(err)
	}
	if err := m.Write(file); err != nil {
		t.Fatal(err)
	}
	if a, _, err = openPages(e, file, c.Next); err != nil {
		t.Fatalf("after a publish: %v", err)
	}
	if !a.Reached(page.Run{First: id, Count: 1}) {
		t.Fatalf("page %d was published, and is free", id)
	}
}

func openPages(e *env.Env, file env.File, proven uint64) (*page.Allocator, page.Choice, error) {
	slot0, slot1, err := page.ReadMetaPages(file)
	if err != nil {
		return nil, page.Choice{}, err
	}
	c, err := page.Pick(slot0, slot1, proven, proven > 0)
	if err != nil {
		return nil, c, err
	}
	if c, err = page.Settle(file, c); err != nil {
		return nil, c, err
	}
	a, err := page.Load(e, file, c)
	return a, c, err
}

// smallFile is a data file of some regions whose directory does not fit the meta page.
var smallFile = sync.OnceValue(func() []byte {
	e := simfs.Memory()
	file, err := e.FS.Open(dataFile, env.OpenCreate)
	if err != nil {
		panic(err)
	}
	a, err := page.Create(e, file, page.Geometry{RegionPages: 64, Inline: 2, PerPage: 4})
	if err != nil {
		panic(err)
	}
	t, err := a.Reserve(page.Request{Pages: 40, Runs: []uint32{16, 16, 32}})
	if err != nil {
		panic(err)
	}
	var born []page.Run
	for generation := uint64(1); generation <= 4; generation++ {
		for range 10 {
			id, _ := t.Page()
			born = append(born, page.Run{First: id, Count: 1})
		}
		if run, ok := t.Run(16); ok {
			born = append(born, run)
		}
		a.Stage(born, nil)
		born = nil
		m := page.Meta{Generation: generation}
		if err := a.WriteBitmaps(&m); err != nil {
			panic(err)
		}
		if err := m.Write(file); err != nil {
			panic(err)
		}
		a.Published()
	}
	size, err := file.Size()
	if err != nil {
		panic(err)
	}
	b := make([]byte, size)
	if _, err := file.ReadAt(b, 0); err != nil {
		panic(err)
	}
	return b
})

// resealMeta gives a meta page the checksum that it should have.
func resealMeta(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[page.Size-4:], page.Checksum(b[:page.Size-4]))
	return b
}
