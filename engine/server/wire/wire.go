// Package wire is MongoDB's wire protocol: messages as bytes, and nothing about what a command means.
//
// A [Reader] takes messages from a connection into a buffer that it uses again, a [Reply] is appended to the caller's
// buffer. What a Reader hands out aliases its buffer and dies at the next Read.
//
// What always holds:
//
//   - A length is checked before anything is allocated or sliced by it. A message's buffer grows with the bytes that have
//     arrived, not with the length that was announced, and a compressed message's claim is checked against what its
//     compressor can reach.
//   - Every document of a Message was checked by [Validate], down to depthMax levels, so that code behind may walk it
//     without fear.
//   - Hostile bytes give an error, never a panic.
//
// # Bytes
//
// All integers are little endian. A message is a header and a body:
//
//	0        4           8            12       16
//	┌────────┬───────────┬────────────┬────────┬──────
//	│ length │ requestID │ responseTo │ opCode │ body
//	└────────┴───────────┴────────────┴────────┴──────
//
// length counts the header too: 16 ≤ length ≤ [MessageSizeMax]. The bodies:
//
//	OP_MSG         flags u32, sections, [crc32c u32 if flag bit 0]
//	  section 0    0x00, document: exactly one
//	  section 1    0x01, size i32 (from itself), identifier cstring, documents
//	OP_COMPRESSED  opCode i32, size i32 (of the body, inflated), compressor u8, bytes
//	OP_QUERY       flags i32, namespace cstring, skip i32, return i32, document, [document]    hello only
//	OP_REPLY       flags i32, cursor i64, from i32, returned i32, documents                    answers OP_QUERY
//
// The checksum covers the message from its header to the last byte before the checksum itself; of a compressed message it
// covers the message as it was before compression.
package wire

import "encoding/binary"

// OpCode is a message's kind.
type OpCode int32

const (
	OpReply      OpCode = 1
	OpQuery      OpCode = 2004
	OpGetMore    OpCode = 2005
	OpCompressed OpCode = 2012
	OpMsg        OpCode = 2013
)

const (
	// MessageSizeMax is the longest message, in bytes, its header included.
	MessageSizeMax = 48_000_000
	// DocumentSizeMax is the longest document that a client may store.
	DocumentSizeMax = 16 << 20
	// WriteBatchMax is the number of statements that one command may carry.
	WriteBatchMax = 100_000

	// MessageLarge is from what length on a message's memory is worth counting.
	MessageLarge = 1 << 20

	// A command has room for a document of the largest size and its own fields.
	documentSizeMax = DocumentSizeMax + 16<<10

	headerSize = 16
)

// The flags of OP_MSG. A receiver must know bits 0 to 15, and may ignore the others.
const (
	flagChecksum            = 1 << 0
	flagMoreToCome          = 1 << 1
	flagExhaustAllowed      = 1 << 16
	flagsRequired           = 1<<16 - 1
	flagsRequiredKnown      = flagChecksum | flagMoreToCome
	checksumSize            = 4
	sectionBody        byte = 0
	sectionDocs        byte = 1
)

// Message is one request. Its slices alias the Reader's buffer.
type Message struct {
	RequestID int32
	Op        OpCode // OpMsg, or OpQuery
	// MoreToCome: the client wants no reply.
	MoreToCome bool
	// Exhaust: the client would take several replies. Nothing obliges a server to send them.
	Exhaust bool
	// Checksum: the client sent one, and it was right. The reply carries one too.
	Checksum bool
	// Compressor is what the message came compressed with; the reply may use the same.
	Compressor Compressor

	Body      []byte // the command's document; of OP_QUERY the query
	Sequences []Sequence
	Namespace string // of OP_QUERY

	// Fault is set if the frame was sound but what it held was not: the client is owed this error, and the connection goes
	// on. Body and Sequences are then not to be used.
	Fault error
}

// Sequence is one section of kind 1: an array of the command that was sent beside it.
type Sequence struct {
	Name  string
	Docs  []byte // documents, one after the other
	Count int
}

func i32(b []byte) int32  { return int32(binary.LittleEndian.Uint32(b)) }
func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

func appendI32(b []byte, v int32) []byte { return binary.LittleEndian.AppendUint32(b, uint32(v)) }
func putI32(b []byte, v int32)           { binary.LittleEndian.PutUint32(b, uint32(v)) }
