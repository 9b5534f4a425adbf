package simfs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// letters is n bytes of c.
func letters(c byte, n int) []byte { return bytes.Repeat([]byte{c}, n) }

// sketch shows a file as runs of equal sectors: a letter (0 for zeros, ? for a mixture) and how many.
func sketch(d *FS, path string) string {
	p, err := d.Peek(path, 0, 1<<30)
	if err != nil {
		return "none"
	}
	var runs []string
	for i := 0; i < len(p); {
		name := func(at int) string {
			s := p[at:min(at+512, len(p))]
			switch {
			case len(bytes.Trim(s, string(s[:1]))) > 0:
				return "?"
			case s[0] == 0:
				return "0"
			}
			return string(s[:1])
		}
		n, first := 0, name(i)
		for i < len(p) && name(i) == first {
			i, n = min(i+512, len(p)), n+1
		}
		runs = append(runs, fmt.Sprintf("%s%d", first, n))
	}
	return strings.Join(runs, " ") + fmt.Sprintf("/%d", len(p))
}

// synced makes a disk with a durable file of 16 sectors of 'a'.
func synced(opt Options) (*FS, env.File) {
	d := New(opt)
	f := must(d.Open("f", env.OpenCreate))
	must(f.WriteAt(letters('a', 8192), 0))
	check(f.Datasync())
	check(d.SyncDir("/"))
	return d, f
}

func TestCrashChoosesAmongWhatIsPending(t *testing.T) {
	cases := []struct {
		name string
		do   func(d *FS, f env.File)
		want map[string]string // by choice
	}{
		{"overwrite", func(d *FS, f env.File) {
			must(f.WriteAt(letters('b', 1024), 0))
			must(f.WriteAt(letters('c', 1024), 512))
		}, map[string]string{
			`{"gen":"drop-all"}`:                                         "a16/8192",
			`{"gen":"keep-all"}`:                                         "b1 c2 a13/8192",
			`{"gen":"prefix","k":1}`:                                     "b2 a14/8192",
			`{"gen":"omit-one","j":2}`:                                   "a1 c2 a13/8192",
			`{"gen":"only-one","k":1}`:                                   "a1 c2 a13/8192",
			`{"gen":"torn","k":1,"mask":2}`:                              "b1 c1 a14/8192",
			`{"gen":"torn","mask":1}`:                                    "b1 a15/8192",
			`{"gen":"random","p":1}`:                                     "b1 c2 a13/8192",
			`{"gen":"drop-all","garbage":true}`:                          "",
			`{"lost":[{"kind":"sector","inode":1,"sector":1,"pick":1}]}`: "b2 c1 a13/8192",
		}},
		{"growth", func(d *FS, f env.File) { must(f.WriteAt(letters('b', 4096), 8192)) }, map[string]string{
			`{"gen":"drop-all"}`:       "a16/8192",
			`{"gen":"prefix","k":1}`:   "a16 08/12288", // size ahead of data
			`{"gen":"omit-one","j":2}`: "a16/8192",     // data ahead of size
			`{"gen":"only-one","k":1}`: "a16 b8/12288",
		}},
		{"shrink and growth", func(d *FS, f env.File) {
			must(f.WriteAt(letters('b', 4096), 4096))
			check(f.Truncate(1000))
			must(f.WriteAt(letters('c', 512), 1536))
		}, map[string]string{
			`{"gen":"keep-all"}`:             "a1 ?1 01 c1/2048",
			`{"gen":"drop-all"}`:             "a16/8192",
			`{"gen":"prefix","k":1}`:         "a8 b8/8192",
			`{"gen":"prefix","k":2}`:         "a2/1000",
			`{"gen":"prefix","k":3}`:         "a1 ?1 02/2048",
			`{"gen":"omit-one","k":1,"j":4}`: "a3 c1 a4 b8/8192", // the shrink undone, old sectors and all
		}},
		{"hole", func(d *FS, f env.File) { check(f.PunchHole(0, 4608)) }, map[string]string{
			`{"gen":"keep-all"}`:     "09 a7/8192",
			`{"gen":"prefix","k":1}`: "08 a8/8192",
			`{"gen":"drop-all"}`:     "a16/8192",
		}},
		{"allocation", func(d *FS, f env.File) { check(f.Allocate(0, 10000)) }, map[string]string{
			`{"gen":"keep-all"}`: "a16 04/10000",
			`{"gen":"drop-all"}`: "a16/8192",
		}},
		{"rename over", func(d *FS, f env.File) {
			g := must(d.Open("g", env.OpenExclusive))
			must(g.WriteAt(letters('g', 512), 0))
			check(d.Rename("g", "f"))
		}, map[string]string{
			`{"gen":"keep-all"}`:             "g1/512",
			`{"gen":"drop-all"}`:             "a16/8192",
			`{"gen":"omit-one","k":1,"j":4}`: "/0", // renamed before it was written
			`{"gen":"omit-one","j":4}`:       "a16/8192",
		}},
		{"removal", func(d *FS, f env.File) { check(d.Remove("f")) }, map[string]string{
			`{"gen":"keep-all"}`: "none",
			`{"gen":"drop-all"}`: "a16/8192",
		}},
	}
	for _, c := range cases {
		d, f := synced(Options{})
		c.do(d, f)
		for choice, want := range c.want {
			var ch Choice
			check(json.Unmarshal([]byte(choice), &ch))
			if ch.String() != choice {
				t.Errorf("%s: %s prints as %s", c.name, choice, ch)
			}
			got := sketch(d.Crash(ch), "f")
			if want != "" && got != want {
				t.Errorf("%s: %s leaves %s, not %s", c.name, choice, got, want)
			}
			if e := d.Explain(ch); !reflect.DeepEqual(e.Lost, []Loss(nil)) || !ch.Garbage {
				if again := sketch(d.Crash(e), "f"); again != got {
					t.Errorf("%s: %s leaves %s, explained as %s it leaves %s", c.name, choice, got, e, again)
				}
			}
		}
		before := sketch(d, "f")
		if got := sketch(d.Crash(Choice{}), "f"); got != before {
			t.Errorf("%s: losing nothing leaves %s, not %s", c.name, got, before)
		}
	}
}

func TestExhaustiveFindsEveryImage(t *testing.T) {
	d, f := synced(Options{})
	must(f.WriteAt(letters('b', 1024), 0))
	must(f.WriteAt(letters('c', 512), 512))
	must(f.WriteAt(letters('d', 512), 8192))
	all, ok := d.Exhaustive(4096)
	if !ok {
		t.Fatal("too many")
	}
	images := map[string]bool{}
	for _, c := range all {
		images[sketch(d.Crash(c), "f")] = true
	}
	// Sector 0 is a or b, sector 1 a, b or c, and the file ends at 8192, or has a sector of zeros or d more.
	if len(images) != 2*3*3 || len(all) != 2*3*2*2 {
		t.Errorf("%d choices, %d images: %v", len(all), len(images), images)
	}
	if _, ok := d.Exhaustive(23); ok {
		t.Error("24 choices are no more than 23")
	}
	if list := d.Choices(1, 10); len(list) != 10 || list[0].Gen != DropAll {
		t.Errorf("sampled: %v", list)
	}
}

func TestSyncCoversWhatWasWrittenBeforeIt(t *testing.T) {
	d, f := synced(Options{})
	for round := range 6 {
		must(f.WriteAt(letters('b'+byte(round), 1024), 0))
	}
	d.SetHooks(Hooks{Watch: func(e Event) {
		if e.Op == OpSync && e.When == Inside {
			// Overtakes the sync, and must not push what the sync covers out of memory.
			for round := range 9 {
				must(f.WriteAt(letters('m'+byte(round), 512), 512))
			}
			if got := sketch(d.Crash(Choice{Gen: DropAll}), "f"); got != "a16/8192" {
				t.Errorf("inside the sync: %s", got)
			}
		}
	}})
	check(f.Datasync())
	if got := sketch(d.Crash(Choice{Gen: DropAll}), "f"); got != "g2 a14/8192" {
		t.Errorf("after the sync: %s", got)
	}
	if got := sketch(d.Crash(Choice{Gen: KeepAll}), "f"); got != "g1 u1 a14/8192" {
		t.Errorf("after the sync, kept: %s", got)
	}
	if n := len(d.Pending()); n != versionsMax-1 { // the one that the sync covered is durable
		t.Errorf("%d versions of one sector are pending", n)
	}
}

func TestNamesAreDurableAfterSyncDirOnly(t *testing.T) {
	d := New(Options{})
	check(d.Mkdir("/db/deep"))
	f := must(d.Open("/db/deep/x", env.OpenCreate))
	must(f.WriteAt(letters('x', 512), 0))
	check(f.Datasync())
	if got := sketch(d.Crash(Choice{Gen: DropAll}), "/db/deep/x"); got != "none" {
		t.Errorf("a synced file without a synced name: %s", got)
	}
	check(d.SyncDir("/db/deep"))
	img := d.Crash(Choice{Gen: DropAll})
	if got := sketch(img, "/db/deep/x"); got != "x1/512" {
		t.Errorf("a synced name: %s", got)
	}
	check(d.Rename("/db/deep/x", "/db/deep/y"))
	check(d.Rename("/db/deep/y", "/db/deep/z"))
	all, _ := d.Exhaustive(100)
	var seen []string
	for _, c := range all {
		seen = append(seen, strings.Join(must(d.Crash(c).List("/db/deep")), " "))
	}
	slices.Sort(seen)
	if got := strings.Join(seen, ","); got != "x,y,z" {
		t.Errorf("after two renames: %s", got)
	}
}

func TestKillKeepsTheCacheAndTheRisk(t *testing.T) {
	d, f := synced(Options{})
	must(f.WriteAt(letters('b', 512), 0))
	g := must(d.Open("g", env.OpenCreate))
	must(g.WriteAt(letters('g', 512), 0))
	check(must(d.Open("gone", env.OpenCreate)).Close())
	check(d.Remove("gone"))
	k := d.Kill()
	must(f.WriteAt(letters('z', 512), 0))
	if got := sketch(k, "f") + ", " + sketch(k, "g"); got != "b1 a15/8192, g1/512" {
		t.Errorf("after the kill: %s", got)
	}
	if k.Used() != 3*4096 {
		t.Errorf("%d bytes used", k.Used())
	}
	img := k.Crash(Choice{Gen: DropAll})
	if got := sketch(img, "f") + ", " + sketch(img, "g"); got != "a16/8192, none" {
		t.Errorf("after the power cut that followed: %s", got)
	}
	check(must(k.Open("f", env.OpenExisting)).Datasync())
	if got := sketch(k.Crash(Choice{Gen: DropAll}), "f"); got != "b1 a15/8192" {
		t.Errorf("after a sync by the next process: %s", got)
	}
}

func TestFailedSyncLeavesCleanPages(t *testing.T) {
	for _, c := range []struct {
		fault             Fault
		seen, later, both string
	}{
		{Fault{Err: EIO}, "b1 a15/8192", "b1 a15/8192", "b1 a15/8192"},
		{Fault{Err: EIO, Sync: CleanKept}, "b1 a15/8192", "a16/8192", "a1 c1 a14/8192"},
		{Fault{Err: EIO, Sync: CleanReverted}, "a16/8192", "a16/8192", "a1 c1 a14/8192"},
		{Fault{Err: EIO, Sync: CleanKept, Written: 1}, "b1 a15/8192", "b1 a15/8192", "b1 c1 a14/8192"},
	} {
		d, f := synced(Options{})
		m := must(f.Map(1 << 20))
		must(f.WriteAt(letters('b', 512), 0))
		d.SetHooks(Hooks{Fault: FailNth(1, c.fault, OpSync)})
		if err := f.Datasync(); !errors.Is(err, EIO) {
			t.Fatalf("sync: %v", err)
		}
		if got := sketch(d, "f"); got != c.seen || m.Bytes()[0] != got[0] {
			t.Errorf("%+v: %s is seen, %c is mapped", c.fault, got, m.Bytes()[0])
		}
		check(f.Datasync())
		if got := sketch(d.Crash(Choice{}), "f"); got != c.later {
			t.Errorf("%+v: %s after the next sync", c.fault, got)
		}
		if c.fault.Sync != StayDirty {
			must(f.WriteAt(letters('c', 512), 512))
			check(f.Datasync())
			if got := sketch(d.Crash(Choice{}), "f"); got != c.both {
				t.Errorf("%+v: %s after another write and sync", c.fault, got)
			}
		}
		d.Discard()
	}
}

func TestFaultsOfWrites(t *testing.T) {
	d, f := synced(Options{})
	next := func(fault Fault, ops ...Op) { d.SetHooks(Hooks{Fault: FailNth(1, fault, ops...)}) }

	next(Fault{Err: ENOSPC, Short: 700}, OpWrite)
	n, err := f.WriteAt(letters('b', 5000), 0)
	if n != 700 || !errors.Is(err, env.ErrNoSpace) || sketch(d, "f") != "b1 ?1 a14/8192" {
		t.Errorf("a short write: %d, %v, %s", n, err, sketch(d, "f"))
	}
	check(f.Datasync())

	next(Fault{Lose: true}, OpWrite)
	must(f.WriteAt(letters('c', 512), 0))
	check(f.Datasync())
	if got := sketch(d, "f") + ", " + sketch(d.Crash(Choice{}), "f"); got != "c1 ?1 a14/8192, b1 ?1 a14/8192" {
		t.Errorf("a lost write: %s", got)
	}

	next(Fault{Misdirect: 1024}, OpWrite)
	must(f.WriteAt(letters('d', 512), 4096))
	check(f.Datasync())
	if got := sketch(d, "f") + ", " + sketch(d.Crash(Choice{}), "f"); got != "c1 ?1 a6 d1 a7/8192, b1 ?1 a8 d1 a5/8192" {
		t.Errorf("a misdirected write: %s", got)
	}
	for _, op := range []Op{OpOpen, OpRead, OpSize, OpMap, OpRename, OpSyncDir, OpList} {
		next(Fault{Err: EIO}, op)
		var err error
		switch op {
		case OpOpen:
			_, err = d.Open("f", env.OpenCreate)
		case OpRead:
			_, err = f.ReadAt(make([]byte, 1), 0)
		case OpSize:
			_, err = f.Size()
		case OpMap:
			_, err = f.Map(1 << 20)
		case OpRename:
			err = d.Rename("f", "g")
		case OpSyncDir:
			err = d.SyncDir("/")
		case OpList:
			_, err = d.List("/")
		}
		if !errors.Is(err, EIO) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

func TestFullDisk(t *testing.T) {
	d, f := synced(Options{Capacity: 16 << 10})
	n, err := f.WriteAt(letters('b', 16384), 4096)
	if n != 12288 || !errors.Is(err, env.ErrNoSpace) {
		t.Errorf("wrote %d: %v", n, err)
	}
	if err := f.Allocate(0, 20000); !errors.Is(err, env.ErrNoSpace) {
		t.Errorf("allocated: %v", err)
	}
	check(f.PunchHole(0, 4096))
	check(f.Allocate(0, 16384))
	must(f.WriteAt(letters('c', 4096), 0))
	g := must(d.Open("g", env.OpenCreate))
	if _, err := g.WriteAt([]byte("x"), 0); !errors.Is(err, env.ErrNoSpace) {
		t.Errorf("wrote to a full disk: %v", err)
	}
	check(d.Remove("f"))
	if _, err := g.WriteAt([]byte("x"), 0); !errors.Is(err, env.ErrNoSpace) {
		t.Errorf("an open file gave its space back: %v", err)
	}
	check(f.Close())
	must(g.WriteAt([]byte("x"), 0))
	if d.Used() != 4096 {
		t.Errorf("%d bytes used", d.Used())
	}
}

func TestMinimiseKeepsWhatMatters(t *testing.T) {
	d, f := synced(Options{})
	for i := range 16 {
		must(f.WriteAt(letters('b', 512), int64(i)*512))
	}
	fails := func(c Choice) bool { return must(d.Crash(c).Peek("f", 5*512, 1))[0] == 'a' }
	min := d.Minimise(Choice{Gen: DropAll}, fails)
	if want := `{"lost":[{"kind":"sector","inode":1,"sector":5}]}`; min.String() != want {
		t.Fatalf("minimised to %s", min)
	}
	text := d.Describe(min)
	for _, want := range []string{"bytes [2560, 3072) of /f, which hold its durable content", "write /f [2560, 3072)", "TestMinimise"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from\n%s", want, text)
		}
	}
}

func TestDamageIsDurable(t *testing.T) {
	d, f := synced(Options{})
	old := d.Crash(Choice{})
	must(f.WriteAt(letters('b', 8192), 0))
	check(f.Datasync())
	check(d.FlipBit("f", 3))
	check(d.Zero("f", 512, 512))
	check(d.Misdirect("f", 1024, 2048, 512))
	check(d.Revert(old, "f", 4096, 512))
	for _, img := range []*FS{d, d.Crash(Choice{Gen: DropAll}), d.Crash(Choice{})} {
		if got := sketch(img, "f"); got != "?1 01 b6 a1 b7/8192" {
			t.Errorf("damaged: %s", got)
		}
	}
	if err := d.Zero("f", 8000, 512); err == nil {
		t.Error("damage behind the end")
	}
}

func TestWriteBackOnlyNarrows(t *testing.T) {
	d, f := synced(Options{})
	must(f.WriteAt(letters('b', 8192), 0))
	must(f.WriteAt(letters('c', 4096), 8192))
	d.WriteBack(1, 1)
	if got := sketch(d.Crash(Choice{Gen: DropAll}), "f"); got != "b16 c8/12288" {
		t.Errorf("written back: %s", got)
	}
	check(f.Truncate(100))
	d.WriteBack(1, 1)
	if got := sketch(d.Crash(Choice{Gen: DropAll}), "f"); got != "b16 c8/12288" {
		t.Errorf("a shrink: %s", got)
	}
}
