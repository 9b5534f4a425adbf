package btree_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/multiforadb/multiforadb/engine/storage/btree"
	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// overlay is a Reader that shows some pages otherwise.
type overlay struct {
	page.Reader
	pages map[page.ID][]byte
}

func (o overlay) Page(ref page.Ref) ([]byte, error) {
	if p := o.pages[ref.ID()]; p != nil {
		return p, nil
	}
	return o.Reader.Page(ref)
}

// Check finds each kind of damage, and names the page that it is in.
func TestCheckFindsDamage(t *testing.T) {
	le := binary.LittleEndian
	swap := func(p []byte, a, b int) {
		x := le.Uint16(p[a:])
		copy(p[a:a+2], p[b:b+2])
		le.PutUint16(p[b:], x)
	}
	for _, c := range []struct {
		name   string
		level  uint8
		over   bool
		damage func(p []byte)
	}{
		{"leaf of another type", 0, false, func(p []byte) { p[4] = byte(page.TypeTable) }},
		{"leaf at another level", 0, false, func(p []byte) { p[5] = 1 }},
		{"another page", 0, false, func(p []byte) { p[8]++ }},
		{"too many cells", 0, false, func(p []byte) { le.PutUint16(p[24:], 3000) }},
		{"one cell less", 0, false, func(p []byte) { p[24]-- }},
		{"no cells", 0, false, func(p []byte) { le.PutUint16(p[24:], 0) }},
		{"heap into the slots", 0, false, func(p []byte) { le.PutUint16(p[26:], 30) }},
		{"heap above a cell", 0, false, func(p []byte) { le.PutUint16(p[26:], le.Uint16(p[26:])+1) }},
		{"used too small", 0, false, func(p []byte) { le.PutUint16(p[28:], le.Uint16(p[28:])-1) }},
		{"prefix too long", 0, false, func(p []byte) { le.PutUint16(p[30:], le.Uint16(p[30:])+1) }},
		{"prefix changed", 0, false, func(p []byte) { p[page.Size-2] ^= 0x40 }},
		{"cells exchanged", 0, false, func(p []byte) { swap(p, 36, 38) }},
		{"cell twice", 0, false, func(p []byte) { copy(p[36:38], p[38:40]) }},
		{"slot beyond the page", 0, false, func(p []byte) { le.PutUint16(p[36:], 65535) }},
		{"cell size", 0, false, func(p []byte) { p[le.Uint16(p[36:])] += 2 }},
		{"branch of another type", 1, false, func(p []byte) { p[4] = byte(page.TypeLeaf) }},
		{"separators exchanged", 1, false, func(p []byte) { swap(p, 44, 46) }},
		{"first child lost", 1, false, func(p []byte) { clear(p[36:44]) }},
		{"first child twice", 1, false, func(p []byte) {
			cell := p[le.Uint16(p[44:]):]
			copy(p[36:44], cell[2+int(cell[0]>>1):])
		}},
		{"child is the root", 2, false, func(p []byte) { copy(p[36:41], p[8:13]) }},
		{"chain ends too early", 0, true, func(p []byte) { clear(p[24:32]) }},
		{"chain goes back to itself", 0, true, func(p []byte) { copy(p[24:29], p[8:13]) }},
		{"rest is wrong", 0, true, func(p []byte) { p[32]++ }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 0)
			for i := range 2000 {
				size := 6
				if i%500 == 0 {
					size = 10000
				}
				b.put(fmt.Appendf(nil, "a key with some length %06d", i*7), make([]byte, size))
			}
			for i := range 2000 {
				b.put(fmt.Appendf(bytes.Repeat([]byte{'x'}, 900), "%06d", i), nil)
			}
			b.audit()
			found := 0
			err := b.tree().Walk(func(ref page.Ref, level uint8, over bool) error {
				if level != c.level || over != c.over {
					return nil
				}
				p, err := b.m.Page(ref)
				if err != nil {
					return err
				}
				if over && le.Uint64(p[24:]) == 0 || le.Uint16(p[24:]) < 3 || !over && p[page.Size-1] == 'x' && level == 0 {
					return nil
				}
				if found++; found > 4 {
					return nil
				}
				p = bytes.Clone(p)
				c.damage(p)
				err = btree.Check(btree.Tree{Head: b.head, R: overlay{b.m, map[page.ID][]byte{ref.ID(): p}}})
				if !errors.Is(err, page.ErrCorrupt) || !strings.Contains(err.Error(), "page ") {
					return fmt.Errorf("page %v: %v", ref, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if found == 0 {
				t.Fatal("no such page")
			}
		})
	}
}

func TestCheckFindsWrongHead(t *testing.T) {
	b := newBench(t, 0)
	for i := range 2000 {
		b.put(fmt.Appendf(nil, "%06d", i), make([]byte, i%7*300))
	}
	for _, change := range []func(h *btree.Head){
		func(h *btree.Head) { h.Entries-- },
		func(h *btree.Head) { h.Pages++ },
		func(h *btree.Head) { h.Pages-- },
		func(h *btree.Head) { h.Overflow++ },
		func(h *btree.Head) { h.Height++ },
		func(h *btree.Head) { h.Height = 0 },
		func(h *btree.Head) { h.Root = 0 },
		func(h *btree.Head) { h.Root = page.MakeRef(1<<30, 0) },
	} {
		head := b.head
		change(&head)
		if err := btree.Check(btree.Tree{Head: head, R: b.m}); !errors.Is(err, page.ErrCorrupt) {
			t.Errorf("%+v instead of %+v: %v", head, b.head, err)
		}
	}
}

// An error of the Editor comes out of every edit as it is.
func TestErrorsOfTheEditorComeOut(t *testing.T) {
	stop := errors.New("no more pages")
	b := newBench(t, 4)
	for i := range 300 {
		b.put(fmt.Appendf(nil, "%06d", i*2), make([]byte, i%5*400))
	}
	b.commit()
	for calls := range 25 {
		for i := range 24 {
			e := &failing{Editor: b.m, left: calls, err: stop}
			head := b.head
			key := fmt.Appendf(nil, "%06d", i*10+i%2)
			var err error
			if i%3 == 0 {
				_, err = b.Delete(e, &head, key)
			} else {
				_, err = b.Put(e, &head, key, make([]byte, i*300))
			}
			if err != nil && err != stop {
				t.Fatal(err)
			}
			if err == nil && e.left < 0 {
				t.Fatal("an error was lost")
			}
			b.m.Rollback()
			b.m.Begin()
			b.audit()
		}
	}
}

// failing is an Editor whose calls fail after some.
type failing struct {
	page.Editor
	left int
	err  error
}

func (f *failing) fails() bool { f.left--; return f.left < 0 }

func (f *failing) Page(ref page.Ref) ([]byte, error) {
	if f.fails() {
		return nil, f.err
	}
	return f.Editor.Page(ref)
}

func (f *failing) New(t page.Type, level uint8) (page.Ref, []byte, error) {
	if f.fails() {
		return 0, nil, f.err
	}
	return f.Editor.New(t, level)
}

func (f *failing) Edit(ref page.Ref) (page.Ref, []byte, error) {
	if f.fails() {
		return 0, nil, f.err
	}
	return f.Editor.Edit(ref)
}
