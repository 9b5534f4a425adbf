package main

import (
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/multiforadb/multiforadb/engine/env"
)

// usage is what files take of a disk, in bytes: as the file system has allocated it, and as the files' sizes say.
type usage struct{ allocated, apparent float64 }

// usageOf adds up the files in dir that take accepts by their names. What vanishes meanwhile takes nothing.
func usageOf(dir string, take func(name string) bool) (u usage) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !take(d.Name()) {
			return nil
		}
		if info, err := env.Real().FS.Stat(path); err == nil {
			u.allocated += float64(info.Allocated)
			u.apparent += float64(info.Size)
		}
		return nil
	})
	return u
}

// allocated is all that is in dir.
func allocated(dir string) float64 { return usageOf(dir, func(string) bool { return true }).allocated }

// dataFile and logFile name MultiforaDB's files.
func dataFile(name string) bool { return name == "data" }
func logFile(name string) bool  { return strings.HasPrefix(name, "wal-") }
