package simfs_test

import (
	"errors"
	"fmt"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/simfs"
)

// save replaces the file name by content so that a crash leaves the old or the new one: the program under test.
func save(e *env.Env, name string, content []byte) error {
	f, err := e.FS.Open(name+".new", env.OpenCreate)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	if err := f.Datasync(); err != nil {
		return err
	}
	if err := e.FS.Rename(name+".new", name); err != nil {
		return err
	}
	return e.FS.SyncDir("/")
}

// A crash at every step of every call that changes something: each image holds the old content or the new.
func Example_crashEverywhere() {
	d := simfs.New(simfs.Options{})
	if err := save(d.Env(1), "f", []byte("old")); err != nil {
		panic(err)
	}
	images, broken := 0, 0
	d.SetHooks(simfs.Hooks{Watch: func(e simfs.Event) {
		for _, c := range append(d.Choices(uint64(e.N), 20), simfs.Choice{Gen: simfs.Killed}) {
			img := d.Crash(c)
			images++
			if got, _ := img.Peek("f", 0, 10); string(got) != "old" && string(got) != "new" {
				broken++
				c = d.Minimise(c, func(c simfs.Choice) bool {
					got, _ := d.Crash(c).Peek("f", 0, 10)
					return string(got) != "old" && string(got) != "new"
				})
				fmt.Printf("%s %s, %s: %q\n%s", e.When, e.Call, c, got, d.Describe(c))
			}
			img.Discard()
		}
	}})
	if err := save(d.Env(2), "f", []byte("new")); err != nil {
		panic(err)
	}
	fmt.Println(images > 40, broken)
	// Output: true 0
}

// Every call fails in turn, until a run is so short that none did.
func Example_failEveryCall() {
	for n := 1; ; n++ {
		d := simfs.New(simfs.Options{})
		if err := save(d.Env(1), "f", []byte("old")); err != nil {
			panic(err)
		}
		d.SetHooks(simfs.Hooks{Fault: simfs.FailNth(n, simfs.Fault{Err: simfs.EIO, Sync: simfs.CleanKept})})
		err := save(d.Env(1), "f", []byte("new"))
		d.SetHooks(simfs.Hooks{})
		after := d.Crash(simfs.Choice{Gen: simfs.DropAll})
		got, _ := after.Peek("f", 0, 10)
		fmt.Printf("%d: %s, failed: %v\n", n, got, errors.Is(err, simfs.EIO))
		if err == nil && n > 6 {
			return
		}
	}
	// Output:
	// 1: old, failed: true
	// 2: old, failed: true
	// 3: old, failed: true
	// 4: old, failed: true
	// 5: old, failed: true
	// 6: old, failed: true
	// 7: new, failed: false
}
