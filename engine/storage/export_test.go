package storage

// The external tests share the flags.

func Seed() uint64 { return *seedFlag }
func Seeds() int   { return *seedsFlag }
func From() uint64 { return *fromFlag }
