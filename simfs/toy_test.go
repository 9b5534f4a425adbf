package simfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/multiforadb/multiforadb/engine/env"
)

// A toy key-value store, right in two variants and wrong in all others. The simulator must flag exactly the wrong ones.
//
// Bytes: "log" is records from offset 0, "snap" is one record of the whole map. A record is length, CRC-32 of the rest,
// generation, payload; a payload is key=value lines. The log's records count only in the generation of the snapshot: a
// snapshot of generation g+1 makes the log of generation g void, so the log needs no truncation.
type toy struct {
	fs    env.FS
	log   env.File
	end   int64
	gen   uint32
	state map[string]string
	bug   string
}

func (s *toy) record(pairs map[string]string) []byte {
	b := make([]byte, 12)
	binary.LittleEndian.PutUint32(b[8:], s.gen)
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		b = fmt.Appendf(b, "%s=%s\n", k, pairs[k])
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	binary.LittleEndian.PutUint32(b[4:], crc32.ChecksumIEEE(b[8:]))
	return b
}

// read decodes the record at off into state, and answers its end, or 0 if it is none.
func (s *toy) read(f env.File, off int64) (end int64, gen uint32) {
	var h [12]byte
	if _, err := f.ReadAt(h[:], off); err != nil {
		return 0, 0
	}
	n := int64(binary.LittleEndian.Uint32(h[:]))
	b := make([]byte, min(max(n, 12), 1<<20))
	if _, err := f.ReadAt(b, off); err != nil && (!errors.Is(err, io.EOF) || s.bug != "no checksum") || n < 12 {
		return 0, 0
	}
	if binary.LittleEndian.Uint32(b[4:]) != crc32.ChecksumIEEE(b[8:]) && s.bug != "no checksum" {
		return 0, 0
	}
	if gen = binary.LittleEndian.Uint32(b[8:]); gen < s.gen {
		return 0, 0
	}
	for line := range strings.Lines(string(b[12:])) {
		k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		s.state[k] = v
	}
	return off + n, gen
}

func openToy(fs env.FS, bug string) (s *toy, err error) {
	s = &toy{fs: fs, bug: bug, state: map[string]string{}}
	if snap, err := fs.Open("snap", env.OpenExisting); err == nil {
		if _, s.gen = s.read(snap, 0); s.gen == 0 {
			return nil, errors.New("toy: the snapshot is damaged")
		}
	}
	if s.log, err = fs.Open("log", env.OpenCreate); err != nil {
		return nil, err
	}
	if bug != "no syncdir after create" {
		if err := fs.SyncDir("/"); err != nil {
			return nil, err
		}
	}
	for {
		end, gen := s.read(s.log, s.end)
		if end == 0 || gen != s.gen {
			return s, nil
		}
		s.end = end
	}
}

// put is durable when it returns.
func (s *toy) put(k, v string) error {
	b := s.record(map[string]string{k: v})
	if _, err := s.log.WriteAt(b, s.end); err != nil {
		return err
	}
	if s.bug != "ack before sync" {
		err := s.log.Datasync()
		if err != nil && s.bug == "sync again after a failure" {
			err = s.log.Datasync()
		}
		if err != nil {
			return err
		}
	}
	s.end += int64(len(b))
	s.state[k] = v
	return nil
}

// checkpoint writes the state as a snapshot and starts the log anew.
func (s *toy) checkpoint() error {
	s.gen++
	name := "snap.new"
	if s.bug == "overwrite in place" {
		name = "snap"
	}
	f, err := s.fs.Open(name, env.OpenCreate)
	if err != nil {
		return err
	}
	defer f.Close()
	if s.bug == "no truncate, and it is right" {
		err = nil // the record says how long it is
	} else {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(s.record(s.state), 0)
	}
	if err == nil && s.bug != "no sync before rename" {
		err = f.Datasync()
	}
	if err == nil && name != "snap" {
		err = s.fs.Rename(name, "snap")
	}
	if err == nil && s.bug != "no syncdir after rename" {
		err = s.fs.SyncDir("/")
	}
	s.end = 0
	return err
}

// runToy runs a script on the variant. At every step of every call it crashes the disk in every way (or, where there are
// too many, in a sample) and opens what is left; the number of images and the complaints are the answer.
func runToy(bug string, fault func(Call) *Fault) (images int, complaints []string) {
	d := New(Options{})
	models := []map[string]string{{}} // after so many puts
	acked, broken := 0, false
	judge := func(c Choice) (complaint string) {
		img := d.Crash(c)
		defer img.Discard()
		images++
		s, err := openToy(img, bug)
		if err != nil {
			return err.Error()
		}
		for n := acked; n < len(models); n++ {
			if maps.Equal(models[n], s.state) {
				return ""
			}
		}
		return fmt.Sprintf("%d pairs, none of the states %d to %d", len(s.state), acked, len(models)-1)
	}
	d.SetHooks(Hooks{Fault: fault, Watch: func(e Event) {
		for _, c := range d.Choices(uint64(e.N), 40) {
			if complaint := judge(c); complaint != "" && len(complaints) < 3 {
				min := d.Minimise(c, func(c Choice) bool { return judge(c) != "" })
				complaints = append(complaints, fmt.Sprintf("%s %s, %s: %s\n%s", e.When, e.Call, min, complaint, d.Describe(min)))
			}
		}
	}})
	s, err := openToy(d, bug)
	for i := 0; i < 12 && err == nil && !broken; i++ {
		if i%5 == 4 {
			broken = s.checkpoint() != nil
			continue
		}
		k, v := fmt.Sprint("key", i%3), strings.Repeat(string(rune('a'+i)), 900)
		next := maps.Clone(models[len(models)-1])
		next[k] = v
		models = append(models, next)
		if broken = s.put(k, v) != nil; !broken {
			acked = len(models) - 1
		}
	}
	return images, complaints
}

func TestToyStoreIsFlaggedExactlyWhenItIsWrong(t *testing.T) {
	failSync := func() func(Call) *Fault { return FailNth(3, Fault{Err: EIO, Sync: CleanKept}, OpSync) }
	for _, c := range []struct {
		bug   string
		fault func() func(Call) *Fault
		right bool
	}{
		{bug: "none", right: true},
		{bug: "none", fault: failSync, right: true},
		{bug: "no truncate, and it is right", right: true},
		{bug: "ack before sync"},
		{bug: "no checksum"},
		{bug: "no sync before rename"},
		{bug: "no syncdir after rename"},
		{bug: "no syncdir after create"},
		{bug: "overwrite in place"},
		{bug: "sync again after a failure", fault: failSync},
		{bug: "sync again after a failure", right: true}, // as long as none fails
	} {
		var fault func(Call) *Fault
		if c.fault != nil {
			fault = c.fault()
		}
		images, complaints := runToy(c.bug, fault)
		if right := len(complaints) == 0; right != c.right {
			t.Errorf("%s: right %v in %d images\n%s", c.bug, right, images, strings.Join(complaints, "\n"))
		} else {
			t.Logf("%s: %d images, right %v", c.bug, images, right)
		}
	}
}
