package wire

import "sync"

// Large buffers are shared between connections: one that is idle holds none, and one that loads or scans does not make and
// clear a new one for each message. What nobody uses the collector takes.
var large sync.Pool // of *[]byte, each longer than bufferKeep

// takeLarge gives a buffer of at least size bytes, from the pool if there is one.
func takeLarge(size int) []byte {
	if b, _ := large.Get().(*[]byte); b != nil {
		if cap(*b) >= size {
			return (*b)[:cap(*b)]
		}
		large.Put(b)
	}
	return make([]byte, size)
}

// giveLarge gives a buffer back, if it is a large one. The caller has no other slice of it.
func giveLarge(b []byte) {
	if cap(b) > bufferKeep {
		b = b[:cap(b)]
		large.Put(&b)
	}
}
