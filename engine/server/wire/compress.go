package wire

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Compressor is a compressor's number in OP_COMPRESSED.
type Compressor byte

const (
	None   Compressor = 0
	Snappy Compressor = 1
	Zlib   Compressor = 2
	Zstd   Compressor = 3
)

// CompressorByName finds a compressor by the name that hello uses.
func CompressorByName(name string) (Compressor, bool) {
	switch name {
	case "snappy":
		return Snappy, true
	case "zlib":
		return Zlib, true
	case "zstd":
		return Zstd, true
	}
	return None, false
}

// ratioMax is how much a compressor can make of one byte, generously: a claim beyond it is refused before memory is
// allocated for it. (Snappy's best is 64 bytes from 3, deflate's 1032 from 1, zstd's a block of 128 KiB from 4.)
func (c Compressor) ratioMax() int {
	switch c {
	case Snappy:
		return 22
	case Zlib:
		return 1040
	case Zstd:
		return 128 << 10
	}
	return 1
}

const compressedHeaderSize = headerSize + 9

// inflate gives the message that b, an OP_COMPRESSED, holds, with a header as it had before compression.
func (r *Reader) inflate(b []byte) ([]byte, error) {
	if len(b) < compressedHeaderSize {
		return nil, fmt.Errorf("a compressed message of %d bytes has no head", len(b))
	}
	op, size, c := OpCode(i32(b[16:])), int64(i32(b[20:])), Compressor(b[24])
	src := b[compressedHeaderSize:]
	if size < 0 || size > MessageSizeMax-headerSize || size > int64(len(src))*int64(c.ratioMax()) {
		return nil, fmt.Errorf("a compressed message of %d bytes claims to hold %d", len(src), size)
	}
	if op == OpCompressed {
		return nil, fmt.Errorf("a compressed message holds a compressed message")
	}
	total := headerSize + int(size)
	if cap(r.plain) < total {
		if total > bufferKeep {
			r.plain = takeLarge(total)
		} else {
			r.plain = make([]byte, total)
		}
	}
	p := r.plain[:total]
	putI32(p, int32(total))
	copy(p[4:12], b[4:12])
	putI32(p[12:], int32(op))
	if err := c.inflate(p[headerSize:], src); err != nil {
		return nil, fmt.Errorf("a compressed message cannot be inflated: %w", err)
	}
	r.msg.Compressor = c
	return p, nil
}

// inflate fills dst, exactly, from src.
func (c Compressor) inflate(dst, src []byte) error {
	switch c {
	case None:
		if len(src) != len(dst) {
			return fmt.Errorf("it holds %d bytes, not %d", len(src), len(dst))
		}
		copy(dst, src)
		return nil
	case Snappy:
		// snappy.Decode allocates what its own header claims unless it fits dst.
		n, err := snappy.DecodedLen(src)
		if err != nil {
			return err
		}
		if n != len(dst) {
			return fmt.Errorf("it holds %d bytes, not %d", n, len(dst))
		}
		_, err = snappy.Decode(dst, src)
		return err
	case Zlib:
		return inflateZlib(dst, src)
	case Zstd:
		out, err := zstdDecoder().DecodeAll(src, dst[:0])
		if err != nil {
			return err
		}
		if len(out) != len(dst) {
			return fmt.Errorf("it holds %d bytes, not %d", len(out), len(dst))
		}
		return nil
	}
	return fmt.Errorf("compressor %d is not served", c)
}

func inflateZlib(dst, src []byte) error {
	z, _ := zlibReaders.Get().(io.Reader)
	var err error
	if z == nil {
		z, err = zlib.NewReader(bytes.NewReader(src))
	} else {
		err = z.(zlib.Resetter).Reset(bytes.NewReader(src), nil)
	}
	if err != nil {
		return err
	}
	defer zlibReaders.Put(z)
	if _, err := io.ReadFull(z, dst); err != nil {
		return err
	}
	var one [1]byte
	if n, err := z.Read(one[:]); n != 0 || err != io.EOF {
		if err != nil && err != io.EOF {
			return err
		}
		return fmt.Errorf("it holds more than %d bytes", len(dst))
	}
	return nil
}

// deflate appends src, compressed.
func (c Compressor) deflate(dst, src []byte) []byte {
	switch c {
	case Snappy:
		at := len(dst)
		if room := snappy.MaxEncodedLen(len(src)); cap(dst)-at < room {
			dst = append(dst, make([]byte, room)...)
		}
		return dst[:at+len(snappy.Encode(dst[at:cap(dst)], src))]
	case Zlib:
		buf := bytes.NewBuffer(dst)
		z := zlibWriters.Get().(*zlib.Writer)
		z.Reset(buf)
		// A bytes.Buffer takes every write.
		_, _ = z.Write(src)
		_ = z.Close()
		zlibWriters.Put(z)
		return buf.Bytes()
	case Zstd:
		return zstdEncoder().EncodeAll(src, dst)
	}
	return append(dst, src...)
}

var zlibReaders sync.Pool // of zlib's reader, which costs 40 KB to make

var zlibWriters = sync.Pool{New: func() any {
	w, err := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	if err != nil {
		panic(err) // a constant level
	}
	return w
}}

// Of zstd's coders only DecodeAll and EncodeAll are used: those start no goroutine and may be called from many.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(MessageSizeMax), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // constant options
	}
	return d
})

var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // constant options
	}
	return e
})
