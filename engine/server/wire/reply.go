package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// Reply is an answer under way. The caller appends one document to Buf between Begin and End.
//
//	r.Begin(m, id)
//	r.Buf = append(r.Buf, doc...)
//	conn.Write(r.End(compress))
//	r.Sent()
//
// A Reply is used again for the next answer; what End gave dies with Sent.
type Reply struct {
	Buf []byte

	wasLarge   bool   // the last answer was: the next one will be, too
	op         OpCode // the request's
	checksum   bool
	compressor Compressor
	packed     []byte
}

// The head of a reply to OP_MSG is header, flags, section kind; of one to OP_QUERY header, flags, cursor, from, returned.
const (
	msgHeadSize   = headerSize + 4 + 1
	replyHeadSize = headerSize + 4 + 8 + 4 + 4

	replyFlagQueryFailure = 2
	replyFlagAwaitCapable = 8
)

// Begin starts the answer to m, with a request number of its own.
func (r *Reply) Begin(m *Message, id int32) {
	r.op, r.checksum, r.compressor = m.Op, m.Checksum, m.Compressor
	if r.wasLarge && r.Buf == nil {
		r.Buf = takeLarge(bufferKeep + 1)
	}
	b := appendI32(r.Buf[:0], 0) // the length, set by End
	b = appendI32(b, id)
	b = appendI32(b, m.RequestID)
	if m.Op == OpQuery {
		b = appendI32(b, int32(OpReply))
		b = appendI32(b, replyFlagAwaitCapable)
		b = binary.LittleEndian.AppendUint64(b, 0)
		b = appendI32(b, 0)
		r.Buf = appendI32(b, 1)
		return
	}
	b = appendI32(b, int32(OpMsg))
	flags := int32(0)
	if m.Checksum {
		flags = flagChecksum
	}
	b = appendI32(b, flags)
	r.Buf = append(b, sectionBody)
}

// Fail marks an answer to OP_QUERY as a failure. An answer to OP_MSG says so in its document.
func (r *Reply) Fail() {
	if r.op == OpQuery {
		r.Buf[headerSize] |= replyFlagQueryFailure
	}
}

// Restart drops what was appended since Begin.
func (r *Reply) Restart() {
	if r.op == OpQuery {
		r.Buf = r.Buf[:replyHeadSize]
		return
	}
	r.Buf = r.Buf[:msgHeadSize]
}

// Sent ends the answer.
func (r *Reply) Sent() {
	if r.wasLarge = len(r.Buf) > bufferKeep; cap(r.Buf) > bufferKeep {
		giveLarge(r.Buf)
		r.Buf = nil
	}
	if cap(r.packed) > bufferKeep {
		giveLarge(r.packed)
		r.packed = nil
	}
}

// End gives the bytes to send. compress allows the compressor that the request came with.
func (r *Reply) End(compress bool) []byte {
	if r.checksum {
		putI32(r.Buf, int32(len(r.Buf)+checksumSize))
		r.Buf = binary.LittleEndian.AppendUint32(r.Buf, crc32.Checksum(r.Buf, castagnoli))
	} else {
		putI32(r.Buf, int32(len(r.Buf)))
	}
	c := r.compressor
	if !compress || c == None {
		return r.Buf
	}
	p := append(r.packed[:0], r.Buf[:headerSize]...)
	putI32(p[12:], int32(OpCompressed))
	p = append(p, r.Buf[12:16]...)
	p = appendI32(p, int32(len(r.Buf)-headerSize))
	p = append(p, byte(c))
	p = c.deflate(p, r.Buf[headerSize:])
	putI32(p, int32(len(p)))
	r.packed = p
	return p
}
