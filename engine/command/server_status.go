package command

import (
	"runtime"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// serverStatus gives the server's figures.
func serverStatus(c *call) error {
	// A client may switch sections on and off by their names; ours are always there.
	p := &c.opts.Process
	up := c.uptime()
	c.out = bsoncore.AppendStringElement(c.out, "host", p.Host)
	c.out = bsoncore.AppendStringElement(c.out, "version", version)
	c.out = bsoncore.AppendStringElement(c.out, "process", "multiforadb")
	c.out = bsoncore.AppendInt64Element(c.out, "pid", int64(p.PID))
	c.out = bsoncore.AppendDoubleElement(c.out, "uptime", float64(int64(up.Seconds())))
	c.out = bsoncore.AppendInt64Element(c.out, "uptimeMillis", up.Milliseconds())
	c.out = bsoncore.AppendInt64Element(c.out, "uptimeEstimate", int64(up.Seconds()))
	c.out = bsoncore.AppendDateTimeElement(c.out, "localTime", c.env.Clock.Now().UnixMilli())
	c.out = nested(c.out, "connections", func(dst []byte) []byte {
		current := c.Net.Current.Load()
		dst = bsoncore.AppendInt32Element(dst, "current", int32(current))
		dst = bsoncore.AppendInt32Element(dst, "available", int32(int64(c.opts.MaxConnections)-current))
		dst = bsoncore.AppendInt32Element(dst, "totalCreated", int32(c.connections.Load()))
		return bsoncore.AppendInt32Element(dst, "rejected", int32(c.Net.Refused.Load()))
	})
	c.out = nested(c.out, "network", func(dst []byte) []byte {
		dst = bsoncore.AppendInt64Element(dst, "bytesIn", c.Net.BytesIn.Load())
		dst = bsoncore.AppendInt64Element(dst, "bytesOut", c.Net.BytesOut.Load())
		return bsoncore.AppendInt64Element(dst, "numRequests", c.Net.Requests.Load())
	})
	c.out = nested(c.out, "opcounters", func(dst []byte) []byte {
		dst = bsoncore.AppendInt64Element(dst, "insert", c.ops.insert.Load())
		dst = bsoncore.AppendInt64Element(dst, "query", c.ops.query.Load())
		dst = bsoncore.AppendInt64Element(dst, "update", c.ops.update.Load())
		dst = bsoncore.AppendInt64Element(dst, "delete", c.ops.remove.Load())
		dst = bsoncore.AppendInt64Element(dst, "getmore", c.ops.getMore.Load())
		return bsoncore.AppendInt64Element(dst, "command", c.ops.command.Load())
	})
	c.out = nested(c.out, "metrics", func(dst []byte) []byte {
		return nested(dst, "cursor", func(dst []byte) []byte {
			open, keep, timed := c.cursors.counts()
			dst = bsoncore.AppendInt64Element(dst, "timedOut", timed)
			return nested(dst, "open", func(dst []byte) []byte {
				dst = bsoncore.AppendInt64Element(dst, "noTimeout", keep)
				return bsoncore.AppendInt64Element(dst, "total", open)
			})
		})
	})
	c.out = nested(c.out, "mem", func(dst []byte) []byte {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		dst = bsoncore.AppendInt32Element(dst, "bits", 32<<(^uint(0)>>63))
		dst = bsoncore.AppendInt32Element(dst, "resident", int32((m.Sys-m.HeapReleased)>>20))
		return bsoncore.AppendBooleanElement(dst, "supported", true)
	})
	c.out = nested(c.out, "storageEngine", func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "name", "multiforadb")
		dst = bsoncore.AppendBooleanElement(dst, "supportsCommittedReads", true)
		dst = bsoncore.AppendBooleanElement(dst, "persistent", true)
		return bsoncore.AppendBooleanElement(dst, "readOnly", false)
	})
	if c.db != nil {
		c.out = nested(c.out, "multiforadb", c.storageStatus)
	}
	return nil
}

// storageStatus is the section that no MongoDB has: what the storage column does. Counts are since the start.
func (c *call) storageStatus(dst []byte) []byte {
	s := c.db.Store().Stats()
	group := func(name string, values ...any) {
		dst = nested(dst, name, func(dst []byte) []byte {
			for i := 0; i < len(values); i += 2 {
				name := values[i].(string)
				switch v := values[i+1].(type) {
				case int64:
					dst = bsoncore.AppendInt64Element(dst, name, v)
				case uint64:
					dst = bsoncore.AppendInt64Element(dst, name, int64(v))
				case float64:
					dst = bsoncore.AppendDoubleElement(dst, name, v)
				}
			}
			return dst
		})
	}
	perSync := 0.0
	if s.Log.Syncs > 0 {
		perSync = float64(s.Writes) / float64(s.Log.Syncs)
	}
	group("lsn", "visible", int64(s.VisibleLSN), "durable", int64(s.DurableLSN), "checkpoint", int64(s.CheckpointLSN))
	group("commit", "writes", s.Writes, "batches", s.Batches, "syncs", s.Log.Syncs, "writesPerSync", perSync, "admissionWaits", s.AdmissionWaits)
	group("checkpoint", "count", s.Checkpoints, "pagesWritten", s.PagesWritten)
	group("pages", "used", s.Pages.Used, "pending", s.Pages.Pending, "free", s.Pages.Free,
		"unbacked", s.Pages.Unbacked, "reserve", s.Pages.Reserve, "regions", s.Pages.Regions, "inMemory", s.FramePages)
	// Of the data file. Totals are of the process's life: a collection that is dropped takes nothing from them.
	group("space", "allocatedBytes", s.AllocatedBytes, "apparentBytes", s.FileBytes, "extentBytes", s.ExtentBytes,
		"deadBytes", s.ExtentBytes-s.ExtentLiveBytes, "pendingBytes", s.PendingBytes, "freeReadyBytes", s.FreeBytes,
		"allocTailBytes", s.TailBytes, "reclaimedBytes", s.FreedBytes, "cleanedBytes", s.CleanedBytes, "compactions", s.CleanedExtents,
		"punchedBytes", s.PunchedBytes, "trimmedBytes", s.TrimmedBytes)
	group("data", "collections", int64(s.Collections), "records", s.Records, "liveBytes", s.LiveBytes)
	group("wal", "bytes", s.LogBytes, "rawBytes", s.Log.Raw, "writtenBytes", s.Log.Written, "blocks", s.Log.Blocks, "marks", s.Log.Marks,
		"segmentsMade", s.Log.Made, "segmentsRecycled", s.Log.Recycled)
	return dst
}
