package storage

import "github.com/multiforadb/multiforadb/engine/storage/page"

// Free space goes back to the file system in two ways: the end of the file is cut off, and runs of free pages inside are punched
// out of it. Neither changes what anyone can reach, and both leave enough for what comes next: space that is
// given back and taken again costs the file system work, and the disk a chance to be full in between.

const (
	// spareShare is how much free space keeps its storage, in percent of what is in use, when holes are punched; that happens
	// when there is twice as much.
	spareShare = 3
	// punchRun is the shortest run of pages that is punched as a matter of course: shorter holes would shred the file.
	punchRun = 16
	// trimMin is a size in pages that is not worth cutting.
	trimMin = 4096
)

// reclaim gives back what has become too much.
func (s *Store) reclaim() error {
	if s.trimDue() {
		if err := s.Trim(); err != nil {
			return err
		}
	}
	if s.punchDue() {
		return s.Punch()
	}
	return nil
}

// Punch gives the storage of free pages inside the file back, but for a share that keeps it.
func (s *Store) Punch() error { return s.punch(s.spare(), punchRun) }

func (s *Store) punch(keep, shortest int) error {
	if err := s.refusal(); err != nil {
		return err
	}
	runs, err := s.alloc.Punch(keep, shortest)
	for _, r := range runs {
		for id := r.First; id < r.End(); id++ {
			s.verified.retract(id)
		}
		s.stats.punchedBytes.Add(int64(r.Count) * page.Size)
	}
	return err // nothing depends on a hole: the database goes on
}

// spare is the number of free pages that keep their storage.
func (s *Store) spare() int {
	st := s.alloc.Stats()
	return int((st.Used+st.Pending)*spareShare/100) + int(2*s.o.CleanSlack/page.Size)
}

func (s *Store) punchDue() bool {
	st := s.alloc.Stats()
	return int(st.Free-st.Holes) > 2*s.spare()
}

// Trim gives the free end of the file back. Both meta pages are durable between checkpoints, and the allocator keeps what either
// of them reaches.
func (s *Store) Trim() error {
	c := &s.checkpointer
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.refusal(); err != nil {
		return err
	}
	return s.trim()
}

func (s *Store) trim() error {
	before := s.alloc.Stats().File
	if err := s.alloc.Trim(); err != nil {
		return s.fail(err)
	}
	s.stats.trimmedBytes.Add(int64(before-s.alloc.Stats().File) * page.Size)
	if err := s.file.Datasync(); err != nil {
		return s.fail(err)
	}
	return nil
}

// trimDue reports whether a quarter of the file or more is free at its end: less would only be allocated again.
func (s *Store) trimDue() bool {
	file := s.alloc.Stats().File
	return file > trimMin && uint64(s.alloc.Truncatable()) < file*3/4
}
