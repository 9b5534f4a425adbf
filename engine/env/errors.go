package env

import "errors"

var (
	// ErrNoSpace: the disk is full, or the quota is used up.
	ErrNoSpace = errors.New("no space left on the disk")
	// ErrLocked: another process, or this one, holds the lock.
	ErrLocked = errors.New("already locked")
	// ErrFault: a load from a mapping faulted, because the storage under it failed or is gone.
	ErrFault = errors.New("mapped storage cannot be read")
)
