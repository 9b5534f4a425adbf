package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/pierrec/lz4/v4"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multiforadb/multiforadb/engine/env"
)

// Names of limits that others compare with.
const (
	limitSync      = "fdatasync"
	limitWrite     = "write"
	limitWriteSync = "write + fdatasync"
	limitMemory    = "memory copy"
	limitPing      = "ping"
)

// limits is the machine: what no database on it can beat. Files are used as the engine uses its own, through package env.
type limits struct {
	Dir  string `default:"." type:"existingdir" help:"Directory on the disk to measure (the current one)."`
	Size size   `default:"256m" help:"How much is written to measure bandwidth (${default})."`
	JSON bool   `help:"Print JSON."`
}

func (l *limits) json() bool { return l.JSON }

func (l *limits) measure(b *bench, r *report) error {
	rows, err := l.rows(b)
	r.Rows = rows
	return err
}

// rows measures all limits.
func (l *limits) rows(b *bench) ([]*row, error) {
	dir, err := os.MkdirTemp(l.Dir, ".bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var rows []*row
	p := b.progress("limits", 6)
	defer p.end()
	for _, f := range []func(dir string) ([]*row, error){l.sync, l.write, l.fault, l.memory, l.compression, l.loopback} {
		if b.ctx.Err() != nil {
			return nil, b.ctx.Err()
		}
		more, err := f(dir)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
		p.add(1)
	}
	return rows, nil
}

// withLimits measures the limits for a report on s: the machine's, and a round trip to s.
func (b *bench) withLimits(f *systemFlags, s *system, r *report) error {
	l := limits{Dir: f.Dir, Size: f.Limits}
	rows, err := l.rows(b)
	if err != nil {
		return err
	}
	ping, err := timed(500, func(int) error {
		return s.client.Database("admin").RunCommand(b.ctx, bson.D{{Key: "ping", Value: 1}}).Err()
	})
	r.Limits = append(rows, newRow(limitPing, "µs", ping))
	return err
}

const block = 4096 // bytes, as the log is padded to

// sync takes what one commit needs at least: a block written into a file that is there already, and made durable.
func (l *limits) sync(dir string) ([]*row, error) {
	const n = 300
	f, err := l.file(dir, "sync", n*block)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, block)
	s, err := timed(n, func(i int) error {
		b[0]++
		_, err := f.WriteAt(b, int64(i)*block)
		return errors.Join(err, f.Datasync())
	})
	return []*row{newRow(limitSync, "µs", s)}, err
}

// file makes a durable file of n zeros.
func (l *limits) file(dir, name string, n int64) (env.File, error) {
	f, err := env.Real().FS.Open(filepath.Join(dir, name), env.OpenExclusive)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteAt(make([]byte, n), 0)
	if err = errors.Join(err, f.Datasync()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// write takes the bandwidth of writing a new file in large pieces, to the cache alone, and up to the disk.
func (l *limits) write(dir string) ([]*row, error) {
	piece := []byte(text()[:1<<20])
	var cached, durable sample
	for i := range 3 {
		f, err := env.Real().FS.Open(filepath.Join(dir, fmt.Sprint("write", i)), env.OpenExclusive)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		for at := int64(0); at < int64(l.Size) && err == nil; at += int64(len(piece)) {
			_, err = f.WriteAt(piece[:min(int64(len(piece)), int64(l.Size)-at)], at)
		}
		cached = append(cached, rate(int64(l.Size), time.Since(start))/1e6)
		err = errors.Join(err, f.Datasync())
		durable = append(durable, rate(int64(l.Size), time.Since(start))/1e6)
		if err = errors.Join(err, f.Close(), os.Remove(filepath.Join(dir, fmt.Sprint("write", i)))); err != nil {
			return nil, err
		}
	}
	return []*row{newRow(limitWrite, "MB/s", cached), newRow(limitWriteSync, "MB/s", durable)}, nil
}

// fault takes what the first look at a page of a mapped file costs when the page is in memory.
func (l *limits) fault(dir string) ([]*row, error) {
	n := min(int64(l.Size), 64<<20)
	f, err := l.file(dir, "map", n)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var s sample
	for range 5 {
		m, err := f.Map(n)
		if err != nil {
			return nil, err
		}
		sum := 0
		start := time.Now()
		for b := m.Bytes(); len(b) > 0; b = b[min(block, len(b)):] {
			sum += int(b[0])
		}
		took := time.Since(start)
		if err := m.Unmap(); err != nil || sum != 0 {
			return nil, fmt.Errorf("a file of zeros, mapped: sum %d, %v", sum, err)
		}
		s = append(s, float64(took.Nanoseconds())/float64(n/block))
	}
	return []*row{newRow("mmap fault", "ns/page", s)}, nil
}

// memory takes the bandwidth of a copy that no cache holds.
func (l *limits) memory(string) ([]*row, error) {
	from, to := make([]byte, 64<<20), make([]byte, 64<<20)
	copy(from, text())
	copy(to, from) // so that both have pages
	var s sample
	for range 5 {
		start := time.Now()
		copy(to, from)
		s = append(s, rate(int64(len(from)), time.Since(start))/1e6)
	}
	return []*row{newRow(limitMemory, "MB/s", s)}, nil
}

// compression takes LZ4's rates on one processor, and how much it makes of the text that documents are filled with.
func (l *limits) compression(string) ([]*row, error) {
	const piece = 64 << 10
	text := []byte(text())
	packed := make([][]byte, len(text)/piece)
	plain := make([]byte, piece)
	var in, out sample
	total := 0
	for round := range 3 {
		var c lz4.Compressor
		start := time.Now()
		for i := range packed {
			if round == 0 {
				packed[i] = make([]byte, lz4.CompressBlockBound(piece))
			}
			n, err := c.CompressBlock(text[i*piece:(i+1)*piece], packed[i][:cap(packed[i])])
			if err != nil {
				return nil, err
			}
			packed[i] = packed[i][:n]
		}
		in = append(in, rate(int64(len(text)), time.Since(start))/1e6)
		start = time.Now()
		total = 0
		for _, p := range packed {
			total += len(p)
			if _, err := lz4.UncompressBlock(p, plain); err != nil {
				return nil, err
			}
		}
		out = append(out, rate(int64(len(text)), time.Since(start))/1e6)
	}
	return []*row{newRow("lz4 compress", "MB/s", in), newRow("lz4 decompress", "MB/s", out),
		newRow("lz4 ratio", "×", sample{float64(len(text)) / float64(total)})}, nil
}

// loopback takes the round trip of a short message between two goroutines over a socket: what no command is faster than.
func (l *limits) loopback(string) ([]*row, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		// Until the other side closes; by reads and writes, not in the kernel.
		_, _ = io.Copy(struct{ io.Writer }{nc}, struct{ io.Reader }{nc})
	}()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	b := make([]byte, len(pingMessage))
	s, err := timed(2000, func(int) error {
		if _, err := nc.Write(pingMessage); err != nil {
			return err
		}
		_, err := io.ReadFull(nc, b)
		return err
	})
	return []*row{newRow("loopback", "µs", s)}, err
}
