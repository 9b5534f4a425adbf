package page

import (
	"math/rand/v2"
	"testing"
)

// worn is an allocator of so many pages whose free space lies in pieces: a third single pages, two thirds extents, of each
// kind one in eight freed.
func worn(b *testing.B, pages int) *bench {
	w := newBench(b, DefaultGeometry)
	r := rand.New(rand.NewPCG(1, 1))
	var live []Run
	for w.Stats().Used < uint64(pages) {
		live = append(live, w.take(Request{Pages: 128, Runs: []uint32{256}})...)
	}
	w.publish(live, nil)
	var gone []Run
	for _, x := range live {
		if r.IntN(8) == 0 {
			gone = append(gone, x)
			w.Free(x)
		}
	}
	w.publish(nil, gone)
	w.publish(nil, nil)
	return w
}

const many = 5_000_000 // pages: 20 GB

func BenchmarkTicketOf16Pages(b *testing.B) {
	w := worn(b, many)
	b.ReportAllocs()
	for b.Loop() {
		t, err := w.Reserve(Request{Pages: 16})
		if err != nil {
			b.Fatal(err)
		}
		var taken [4]ID
		for i := range taken {
			taken[i], _ = t.Page()
		}
		t.Release()
		for _, id := range taken {
			w.Free(Run{id, 1})
		}
	}
}

// A page is taken and another one, taken long ago, freed: what a copy-on-write tree does all day.
func BenchmarkPageForPage(b *testing.B) {
	w := worn(b, many)
	var held [4096]ID
	t, err := w.Reserve(Request{Pages: len(held)})
	if err != nil {
		b.Fatal(err)
	}
	for i := range held {
		held[i], _ = t.Page()
	}
	i := 0
	for b.Loop() {
		t, err := w.Reserve(Request{Pages: 1})
		if err != nil {
			b.Fatal(err)
		}
		w.Free(Run{held[i], 1})
		held[i], _ = t.Page()
		i = (i + 1777) % len(held)
	}
}

func BenchmarkExtentForExtent(b *testing.B) {
	w := worn(b, many)
	var held []Run
	for _, n := range []uint32{4, 8, 16, 32, 64, 128, 256} {
		for range 8 {
			held = append(held, w.take(Request{Runs: []uint32{n}})...)
		}
	}
	i := 0
	for b.Loop() {
		w.Free(held[i])
		held[i] = w.take(Request{Runs: []uint32{held[i].Count}})[0]
		i = (i + 11) % len(held)
	}
}

// The file grows by single pages.
func BenchmarkGrowth(b *testing.B) {
	w := newBench(b, DefaultGeometry)
	for b.Loop() {
		t, err := w.Reserve(Request{Pages: 16})
		if err != nil {
			b.Fatal(err)
		}
		for range 16 {
			t.Page()
		}
		t.Release()
		if w.Stats().File > many {
			b.StopTimer()
			w = newBench(b, DefaultGeometry)
			b.StartTimer()
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	w := worn(b, many)
	r := rand.New(rand.NewPCG(2, 2))
	for b.Loop() {
		b.StopTimer()
		runs := w.take(Request{Pages: 2000, Runs: []uint32{256, 256}})
		for range 20 { // changes in many regions
			x := w.take(Request{Pages: 1 + r.IntN(20)})
			runs = append(runs, x...)
		}
		b.StartTimer()
		w.Stage(runs, nil)
		w.meta.Generation++
		if err := w.WriteBitmaps(&w.meta); err != nil {
			b.Fatal(err)
		}
		w.Published()
	}
}

func BenchmarkLoad(b *testing.B) {
	w := worn(b, many)
	c, err := w.choice()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(w.e, w.f, c); err != nil {
			b.Fatal(err)
		}
	}
}
