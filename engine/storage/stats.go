package storage

import (
	"path"
	"sync/atomic"

	"github.com/multiforadb/multiforadb/engine/storage/page"
	"github.com/multiforadb/multiforadb/engine/storage/wal"
)

// counters count since the Store was opened.
type counters struct {
	batches        atomic.Int64 // made durable
	writes         atomic.Int64 // installed with log
	checkpoints    atomic.Int64
	pagesWritten   atomic.Int64 // by checkpoints
	admissionWaits atomic.Int64
	cleanedBytes   atomic.Int64 // moved by the cleaner
	punchedBytes   atomic.Int64
	trimmedBytes   atomic.Int64
	cleanedExtents atomic.Int64 // that the cleaner went through to the end
	freedBytes     atomic.Int64 // of extents given up

	extentBytes, liveBytes atomic.Int64 // of all extents, now
}

// Stats are numbers about a Store, for people.
type Stats struct {
	VisibleLSN    LSN
	CheckpointLSN LSN
	DurableLSN    LSN

	Batches        int64 // made durable since the open: one sync each
	Writes         int64 // installed since the open
	Checkpoints    int64
	PagesWritten   int64
	AdmissionWaits int64
	CleanedBytes   int64 // of records that the cleaner moved
	PunchedBytes   int64 // of free space inside the file, given back
	TrimmedBytes   int64 // of free space at its end, given back
	CleanedExtents int64 // that it emptied
	FreedBytes     int64 // of extents given up since the open: emptied by deletes, by the cleaner, or dropped

	ExtentBytes     int64 // of all extents
	ExtentLiveBytes int64 // of the records in them, with headers and padding

	FileBytes      int64
	AllocatedBytes int64 // of storage that the file takes
	UsedBytes      int64 // of the file: in use,
	PendingBytes   int64 // reached by a meta page only, and so free after a checkpoint or two,
	FreeBytes      int64 // free,
	TailBytes      int64 // and free at its end

	FramePages  int64 // in memory only, so far
	Collections int
	Records     uint64
	LiveBytes   uint64 // sum of the records' sizes

	Pages page.Stats
	Log   wal.Stats
	// LogBytes is the size of the log's files.
	LogBytes int64
}

// Stats counts. It pins a snapshot and visits every collection's head.
func (s *Store) Stats() Stats {
	sn := s.Snapshot()
	defer sn.Release()
	out := Stats{
		VisibleLSN:      sn.lsn,
		DurableLSN:      LSN(s.log.Durable()),
		Batches:         s.stats.batches.Load(),
		Writes:          s.stats.writes.Load(),
		Checkpoints:     s.stats.checkpoints.Load(),
		PagesWritten:    s.stats.pagesWritten.Load(),
		AdmissionWaits:  s.stats.admissionWaits.Load(),
		CleanedBytes:    s.stats.cleanedBytes.Load(),
		PunchedBytes:    s.stats.punchedBytes.Load(),
		TrimmedBytes:    s.stats.trimmedBytes.Load(),
		CleanedExtents:  s.stats.cleanedExtents.Load(),
		FreedBytes:      s.stats.freedBytes.Load(),
		ExtentBytes:     s.space().total,
		ExtentLiveBytes: s.space().live,
		FramePages:      s.frames.count.Load(),
		Pages:           s.alloc.Stats(),
		Log:             s.log.Stats(),
		LogBytes:        s.log.Size(),
	}
	out.FileBytes, _ = s.file.Size() // only a closed file has none
	if info, err := s.env.FS.Stat(path.Join(s.dir, dataName)); err == nil {
		out.AllocatedBytes = info.Allocated
	}
	out.UsedBytes, out.PendingBytes, out.FreeBytes = int64(out.Pages.Used)*page.Size, int64(out.Pages.Pending)*page.Size, int64(out.Pages.Free)*page.Size
	out.TailBytes = int64(out.Pages.File-uint64(s.alloc.Truncatable())) * page.Size
	_ = sn.heads.all(func(_ CollID, h *head) error {
		if !h.dropped {
			out.Collections++
			out.Records += h.count
			out.LiveBytes += h.bytes
		}
		return nil
	})
	s.chain.Lock()
	out.CheckpointLSN = s.checkpointLSN
	s.chain.Unlock()
	return out
}
