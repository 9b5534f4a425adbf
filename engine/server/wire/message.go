package wire

import (
	"bytes"
	"fmt"
	"hash/crc32"

	"github.com/multiforadb/multiforadb/engine/mongoerr"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// parse reads a whole, uncompressed message into m, whose RequestID is set. An error means that the connection cannot go on: the
// peer speaks something else. A request that is only wrong is m.Fault.
func (m *Message) parse(b []byte) error {
	switch m.Op = OpCode(i32(b[12:])); m.Op {
	case OpMsg:
		return m.parseMsg(b)
	case OpQuery:
		return m.parseQuery(b[headerSize:])
	}
	return fmt.Errorf("operation code %d is not served", m.Op)
}

func (m *Message) parseMsg(b []byte) error {
	if len(b) < headerSize+4 {
		return fmt.Errorf("a message of %d bytes has no flags", len(b))
	}
	flags := u32(b[headerSize:])
	m.MoreToCome = flags&flagMoreToCome != 0
	m.Exhaust = flags&flagExhaustAllowed != 0
	rest := b[headerSize+4:]
	if flags&flagChecksum != 0 {
		if len(rest) < checksumSize {
			return fmt.Errorf("a message of %d bytes has no room for its checksum", len(b))
		}
		end := len(b) - checksumSize
		if want, got := u32(b[end:]), crc32.Checksum(b[:end], castagnoli); want != got {
			return fmt.Errorf("a message's checksum is %08x, and it says %08x", got, want)
		}
		rest = rest[:len(rest)-checksumSize]
		m.Checksum = true
	}
	if unknown := flags & flagsRequired &^ flagsRequiredKnown; unknown != 0 {
		m.Fault = mongoerr.IllegalOpMsgFlag.Errorf("Message contains illegal flags value: Ob%b", unknown)
		return nil
	}
	m.Fault = m.parseSections(rest)
	return nil
}

func (m *Message) parseSections(b []byte) error {
	for len(b) > 0 {
		kind := b[0]
		b = b[1:]
		switch kind {
		case sectionBody:
			if m.Body != nil {
				return mongoerr.Code(40430).Errorf("Multiple body sections in message")
			}
			n, err := checkDocument(b)
			if err != nil {
				return err
			}
			m.Body, b = b[:n], b[n:]
		case sectionDocs:
			n, err := m.parseSequence(b)
			if err != nil {
				return err
			}
			b = b[n:]
		default:
			return mongoerr.Code(40432).Errorf("Unknown section kind %d", kind)
		}
	}
	if m.Body == nil {
		return mongoerr.Code(40587).Errorf("OP_MSG messages must have a body")
	}
	return nil
}

// sequencesMax bounds what a message full of empty sequences can make of itself; no command takes more than two.
const sequencesMax = 16

func (m *Message) parseSequence(b []byte) (int, error) {
	if len(b) < 4 {
		return 0, mongoerr.InvalidBSON.Errorf("a document sequence has no length")
	}
	size := int64(i32(b))
	if size < 5 || size > int64(len(b)) {
		return 0, mongoerr.InvalidBSON.Errorf("a document sequence claims %d bytes, and there are %d", size, len(b))
	}
	rest := b[4:size]
	end := bytes.IndexByte(rest, 0)
	if end < 0 {
		return 0, mongoerr.InvalidBSON.Errorf("a document sequence's name has no end")
	}
	if len(m.Sequences) == sequencesMax {
		return 0, mongoerr.TooManyDocumentSequences.Errorf("Too many document sequences in OP_MSG")
	}
	s := Sequence{Name: string(rest[:end]), Docs: rest[end+1:]}
	for i := range m.Sequences {
		if m.Sequences[i].Name == s.Name {
			return 0, mongoerr.Code(40431).Errorf("Duplicate document sequence: %s", s.Name)
		}
	}
	for at := 0; at < len(s.Docs); s.Count++ {
		n, err := checkDocument(s.Docs[at:])
		if err != nil {
			return 0, err
		}
		at += n
	}
	m.Sequences = append(m.Sequences, s)
	return int(size), nil
}

func (m *Message) parseQuery(b []byte) error {
	if len(b) < 4 {
		return fmt.Errorf("a query of %d bytes has no flags", len(b))
	}
	b = b[4:]
	end := bytes.IndexByte(b, 0)
	if end < 0 || len(b)-end-1 < 8 {
		return fmt.Errorf("a query has no sound head")
	}
	m.Namespace = string(b[:end])
	b = b[end+1+8:]
	n, err := checkDocument(b)
	if err != nil {
		m.Fault = err
		return nil
	}
	m.Body = b[:n]
	// A selector of fields may follow; it means nothing to a command.
	if rest := b[n:]; len(rest) > 0 {
		k, err := checkDocument(rest)
		if err == nil && k != len(rest) {
			err = mongoerr.InvalidBSON.Errorf("%d bytes follow the query", len(rest)-k)
		}
		m.Fault = err
	}
	return nil
}

// checkDocument is Validate with the limit of size and a client's error.
func checkDocument(b []byte) (int, error) {
	if len(b) >= 4 {
		if n := i32(b); n > documentSizeMax {
			return 0, mongoerr.BSONObjectTooLarge.Errorf("BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d", n, n, documentSizeMax)
		}
	}
	n, err := Validate(b)
	if err != nil {
		return 0, mongoerr.InvalidBSON.Errorf("Invalid BSON: %w", err)
	}
	return n, nil
}
