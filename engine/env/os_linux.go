package env

import "golang.org/x/sys/unix"

const mapReserve = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE

func dataSync(fd int) error { return unix.Fdatasync(fd) }
func fullSync(fd int) error { return unix.Fsync(fd) }

func allocate(fd int, off, n int64) error {
	return retry(func() error { return unix.Fallocate(fd, 0, off, n) })
}

func punch(fd int, off, n int64) error {
	return retry(func() error {
		return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
	})
}
