package judge

import (
	"fmt"
	"path"

	"github.com/multiforadb/multiforadb/engine/env"
	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/wal"
	"github.com/multiforadb/multiforadb/simfs"
)

// Visible judges that all batches up to lsn, which someone was told of or shown, survive a power cut at this moment.
func (j *Judge) Visible(lsn uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return
	}
	j.counts.Acks++
	ends, err := j.ends(j.durable())
	if err != nil {
		j.fault("ack", "LSN %d is visible, and the log on the disk cannot be read: %v", lsn, err)
		return
	}
	for _, e := range ends {
		if e.end < wal.LSN(lsn) {
			j.fault("ack", "LSN %d is visible, but on the disk the log ends at %d, read from generation %d", lsn, e.end, e.meta.Generation)
			return
		}
	}
}

// end is where the log ends as seen from a meta page.
type end struct {
	meta *page.Meta
	end  wal.LSN
}

// ends reads the log of an image from each of its valid meta pages.
func (j *Judge) ends(img *simfs.FS) ([]end, error) {
	metas := metasOf(img, j.data)
	if metas[0] == nil && metas[1] == nil {
		return nil, nil
	}
	log, err := wal.Open(img.Env(1), j.dir, wal.Options{})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	proven, known := log.Proven()
	if newest := max(generation(metas[0]), generation(metas[1])); known && proven > newest {
		return nil, fmt.Errorf("it calls the meta page of generation %d durable, and the disk has none above %d", proven, newest)
	}
	var ends []end
	for _, m := range metas {
		if m == nil || known && m.Generation < proven && m.Generation&1 == proven&1 {
			continue
		}
		e, err := log.Recover(wal.LSN(m.LSN), wal.LSN(m.LSN))
		if err != nil {
			return nil, fmt.Errorf("from generation %d: %w", m.Generation, err)
		}
		ends = append(ends, end{m, e})
	}
	return ends, nil
}

func generation(m *page.Meta) uint64 {
	if m == nil {
		return 0
	}
	return m.Generation
}

// watchLog judges what takes parts of the log away.
func (j *Judge) watchLog(e simfs.Event) {
	if path.Base(e.Path) == "wal-new" {
		return // what it was before is judged when it gets that name
	}
	switch {
	case e.Op == simfs.OpRename && e.When == simfs.Before, e.Op == simfs.OpRemove && e.When == simfs.Before:
		j.gone(e, func(img *simfs.FS) error {
			err := img.Env(1).FS.Remove(e.Path)
			if _, stat := img.Env(1).FS.Stat(e.Path); stat != nil {
				return nil
			}
			return err
		})
	case e.Op == simfs.OpTruncate && e.When == simfs.Before:
		j.gone(e, func(img *simfs.FS) error {
			f, err := img.Env(1).FS.Open(e.Path, env.OpenExisting)
			if err != nil {
				return nil // its name is not durable yet
			}
			defer f.Close()
			return f.Truncate(e.Off)
		})
	case e.Op == simfs.OpWrite && e.When == simfs.Before: // a part of it may be durable at once
		if j.logWrites++; j.logWrites%j.o.LogShare == 0 {
			j.gone(e, func(img *simfs.FS) error {
				waste := make([]byte, e.Len)
				for i := range waste {
					waste[i] = 0xDD
				}
				if info, err := img.Stat(e.Path); err != nil || info.Size < e.Off+e.Len {
					return nil
				}
				return img.Overwrite(e.Path, e.Off, waste)
			})
		}
	}
}

// gone judges that the log reads the same without what is going to be taken away.
func (j *Judge) gone(e simfs.Event, take func(img *simfs.FS) error) {
	j.counts.Removals++
	before, err := j.ends(j.durable())
	if err != nil {
		j.fault("log removal", "%v: before it, the log on the disk cannot be read: %v", e.Call, err)
		return
	}
	img := j.durable()
	if err := take(img); err != nil {
		j.fault("log removal", "%v: %v", e.Call, err)
		return
	}
	after, err := j.ends(img)
	if err != nil {
		j.fault("log removal", "%v: the log is needed: without that, %v", e.Call, err)
		return
	}
	for i := range before {
		if before[i].end != after[i].end {
			j.fault("log removal", "%v: the log is needed: from generation %d it ends at %d, and without that at %d", e.Call,
				before[i].meta.Generation, before[i].end, after[i].end)
			return
		}
	}
}
