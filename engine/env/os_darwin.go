package env

import (
	"errors"

	"golang.org/x/sys/unix"
)

const mapReserve = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE

// dataSync asks the drive itself to write its cache out, which fsync does not do here. File systems that cannot (most
// network ones) get an fsync.
func dataSync(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
	if errors.Is(err, errors.ErrUnsupported) || err == unix.ENOTTY || err == unix.EINVAL {
		return unix.Fsync(fd)
	}
	return err
}

func fullSync(fd int) error { return dataSync(fd) }

func allocate(fd int, off, n int64) error { return errors.ErrUnsupported }
func punch(fd int, off, n int64) error    { return errors.ErrUnsupported }
