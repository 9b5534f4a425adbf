package wal

import (
	"encoding/binary"

	"github.com/multiforadb/multiforadb/engine/storage/page"
)

// reseal makes a changed segment header's checksum right.
func reseal(b []byte) { binary.LittleEndian.PutUint32(b, page.Checksum(b[4:segmentHeaderSize])) }
