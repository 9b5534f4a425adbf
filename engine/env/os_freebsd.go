package env

import (
	"errors"

	"golang.org/x/sys/unix"
)

const mapReserve = unix.MAP_PRIVATE | unix.MAP_ANON

func dataSync(fd int) error { return unix.Fsync(fd) }
func fullSync(fd int) error { return unix.Fsync(fd) }

func allocate(fd int, off, n int64) error { return errors.ErrUnsupported }
func punch(fd int, off, n int64) error    { return errors.ErrUnsupported }
