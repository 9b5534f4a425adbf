package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// metaOf says what was measured, where and when.
func metaOf(c *planRun) *section {
	s := &section{name: "meta"}
	add := func(name, value string) {
		if value = strings.TrimSpace(value); value != "" {
			s.lines = append(s.lines, name+"\t"+strings.ReplaceAll(value, "\t", " "))
		}
	}
	add("format", "1")
	add("date", time.Now().UTC().Format(time.RFC3339))
	add("commit", commit())
	add("go", runtime.Version())
	add("system", runtime.GOOS+"/"+runtime.GOARCH)
	add("kernel", firstLine("/proc/sys/kernel/osrelease"))
	add("processors", fmt.Sprint(runtime.NumCPU()))
	add("processor", field("/proc/cpuinfo", "model name"))
	add("memory", field("/proc/meminfo", "MemTotal"))
	add("repeated", fmt.Sprint(c.Repeat))
	add("load average, start", loadAverage())
	return s
}

// commit names what is measured; a tree with changes of its own says so.
func commit() string {
	head, err := exec.Command("git", "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(head))
	if changes, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err == nil && len(changes) > 0 {
		name += "-changed"
	}
	return name
}

func loadAverage() string { return firstLine("/proc/loadavg") }

// firstLine is empty where the system has no such file.
func firstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// field is the value of the first line "name : value" of a file.
func field(path, name string) string {
	text, _ := os.ReadFile(path) // a system that has none tells nothing
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
