package wire

import (
	"fmt"
	"io"
)

const (
	// bufferStep is a new connection's buffer, and the least that a Read asks for.
	bufferStep = 4 << 10
	// bufferKeep is what a connection may hold on to between messages.
	bufferKeep = 256 << 10
	// bufferGrowth is how far the buffer may run ahead of what has arrived: a client that announces 48 MB and sends nothing
	// costs it this factor of nothing.
	bufferGrowth = 4
)

// Reader reads messages from a connection.
type Reader struct {
	src io.Reader
	buf []byte // buf[from:to] has arrived and is not consumed
	from,
	to int
	plain []byte // the last compressed message, inflated
	msg   Message

	// OnWait, if set, is called before a read that begins a message (true) or continues one (false); a server sets deadlines
	// there.
	OnWait func(idle bool)
	// OnLarge, if set, is called before buffers of size bytes are made for a message of more than [MessageLarge] bytes. An
	// error ends the connection.
	OnLarge func(size int64) error
}

// NewReader makes a Reader of src.
func NewReader(src io.Reader) *Reader { return &Reader{src: src} }

// Read gives the next message, which is valid until the next call. io.EOF means that the peer closed between two messages; any
// other error that the connection cannot go on.
func (r *Reader) Read() (*Message, error) {
	r.trim()
	if err := r.fill(headerSize); err != nil {
		if err == io.ErrUnexpectedEOF && r.to == r.from {
			err = io.EOF
		}
		return nil, err
	}
	size := i32(r.buf[r.from:])
	if size < headerSize || size > MessageSizeMax {
		return nil, fmt.Errorf("a message claims a length of %d bytes", size)
	}
	if err := r.announce(int64(size)); err != nil {
		return nil, err
	}
	if err := r.fill(int(size)); err != nil {
		return nil, err
	}
	b := r.buf[r.from : r.from+int(size)]
	r.from += int(size)

	m := &r.msg
	*m = Message{RequestID: i32(b[4:]), Sequences: m.Sequences[:0]}
	if OpCode(i32(b[12:])) == OpCompressed {
		var err error
		if b, err = r.inflate(b); err != nil {
			return nil, err
		}
	}
	return m, m.parse(b)
}

// announce tells what the message at r.from, of size bytes, will take: if it is compressed, inflated as well.
func (r *Reader) announce(size int64) error {
	if r.OnLarge == nil {
		return nil
	}
	if OpCode(i32(r.buf[r.from+12:])) == OpCompressed && size >= compressedHeaderSize {
		if err := r.fill(compressedHeaderSize); err != nil {
			return err
		}
		// inflate checks the claim; one that is too large is none.
		if claim := int64(i32(r.buf[r.from+20:])); claim > 0 && claim <= MessageSizeMax {
			size += claim
		}
	}
	if size <= MessageLarge {
		return nil
	}
	return r.OnLarge(size)
}

// fill reads until n bytes have arrived.
func (r *Reader) fill(n int) error {
	for r.to-r.from < n {
		r.room(n)
		if r.OnWait != nil {
			r.OnWait(r.to == r.from)
		}
		k, err := r.src.Read(r.buf[r.to:])
		r.to += k
		if err != nil && r.to-r.from < n {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// room makes free space behind r.to, for a message of limit bytes in all.
func (r *Reader) room(limit int) {
	if r.from == r.to {
		r.from, r.to = 0, 0
	}
	if len(r.buf)-r.from >= limit || len(r.buf) < limit && r.to < len(r.buf) {
		return
	}
	have := r.to - r.from
	if size := max(bufferStep, min(limit, bufferGrowth*have)); size > len(r.buf) {
		var next []byte
		if size > bufferKeep {
			next = takeLarge(size)
		} else {
			next = make([]byte, size)
		}
		copy(next, r.buf[r.from:r.to])
		giveLarge(r.buf)
		r.buf = next
	} else {
		copy(r.buf, r.buf[r.from:r.to])
	}
	r.from, r.to = 0, have
}

// trim gives large buffers back between messages.
func (r *Reader) trim() {
	if cap(r.plain) > bufferKeep {
		giveLarge(r.plain)
		r.plain = nil
	}
	if have := r.to - r.from; len(r.buf) > bufferKeep && have <= bufferStep {
		next := make([]byte, bufferStep)
		copy(next, r.buf[r.from:r.to])
		giveLarge(r.buf)
		r.buf, r.from, r.to = next, 0, have
	}
}
