package simfs

import "fmt"

// Damage changes bytes that were durable, behind everybody's back: in the durable content, in what is seen, and in every
// pending version. Take it on a crash image, or between two calls.

// Overwrite puts p where it does not belong. It does not change the size.
func (d *FS) Overwrite(path string, off int64, p []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _, ino, err := d.find(path)
	if err == nil && (off < 0 || off+int64(len(p)) > ino.volatile.size) {
		err = fmt.Errorf("[%d, %d) is not in its %d bytes", off, off+int64(len(p)), ino.volatile.size)
	}
	if err != nil {
		return pathErr("damage", path, err)
	}
	for len(p) > 0 {
		i, at := off/pageSize, off%pageSize
		n := min(int64(len(p)), pageSize-at)
		if i*pageSize < ino.durable.size {
			ino.durable.set(i, ino.durable.page(i).with(at, p[:n]))
		}
		for j, v := range ino.dirty[i] {
			ino.dirty[i][j].data = v.data.with(at, p[:n])
		}
		ino.put(i, ino.volatile.page(i).with(at, p[:n]), at, n, nil)
		p, off = p[n:], off+n
	}
	return nil
}

// Peek reads what is seen, past hooks and faults, and without being counted.
func (d *FS) Peek(path string, off, n int64) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _, ino, err := d.find(path)
	if err != nil {
		return nil, pathErr("damage", path, err)
	}
	p := make([]byte, min(max(ino.volatile.size-off, 0), n))
	ino.volatile.read(p, off)
	return p, nil
}

// FlipBit inverts one bit; bit counts from the beginning of the file.
func (d *FS) FlipBit(path string, bit int64) error {
	p, err := d.Peek(path, bit/8, 1)
	if err != nil {
		return err
	}
	if len(p) == 0 {
		return fmt.Errorf("simfs: %s has no bit %d", path, bit)
	}
	p[0] ^= 1 << (bit % 8)
	return d.Overwrite(path, bit/8, p)
}

// Zero makes [off, off+n) zeros.
func (d *FS) Zero(path string, off, n int64) error {
	return d.Overwrite(path, off, make([]byte, n))
}

// Misdirect makes to hold what from holds, as if the write of from had landed there as well.
func (d *FS) Misdirect(path string, from, to, n int64) error {
	p, err := d.Peek(path, from, n)
	if err != nil {
		return err
	}
	return d.Overwrite(path, to, p)
}

// Revert makes [off, off+n) hold what it holds on old, an earlier image, as if all writes since had been lost.
func (d *FS) Revert(old *FS, path string, off, n int64) error {
	p, err := old.Peek(path, off, n)
	if err != nil {
		return err
	}
	return d.Overwrite(path, off, p)
}
