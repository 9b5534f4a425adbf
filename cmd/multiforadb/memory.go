package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// byteSize is a number of bytes as people write it: 400m, 1.5g, 65536.
type byteSize int64

func (s *byteSize) UnmarshalText(text []byte) error {
	number, unit := strings.ToLower(string(text)), int64(1)
	number = strings.TrimSuffix(strings.TrimSuffix(number, "b"), "i")
	for suffix, n := range map[string]int64{"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40} {
		if strings.HasSuffix(number, suffix) {
			number, unit = strings.TrimSuffix(number, suffix), n
			break
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f < 0 || f*float64(unit) > math.MaxInt64/2 {
		return fmt.Errorf("%q is not a size such as 512m or 2g", text)
	}
	*s = byteSize(f * float64(unit))
	return nil
}

// maxMemoryMin is the least that --max-memory may be: one message of the largest size and its reply must fit its share.
const maxMemoryMin = 64 << 20

// messageShare is the part of the memory that large messages under way may take together.
const messageShare = 4

// machineMemory is what this process may use of the machine's memory, its control group's limit included; 0 if that is not known.
func machineMemory() int64 {
	memory := int64(0)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		if _, rest, ok := bytes.Cut(b, []byte("MemTotal:")); ok {
			if f := strings.Fields(string(rest[:min(len(rest), 100)])); len(f) > 0 {
				kib, _ := strconv.ParseInt(f[0], 10, 64) // 0 is "not known"
				memory = kib << 10
			}
		}
	}
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if b, err := os.ReadFile(name); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && (memory == 0 || n < memory) {
				memory = n
			}
		}
	}
	return memory
}

// memory says how much the process's heap may take: what the flag says, else half of the machine's.
func (c *serve) memory() (int64, error) {
	switch m := int64(c.MaxMemory); {
	case m == 0:
		return max(machineMemory()/2, 0), nil
	case m < maxMemoryMin:
		return 0, fmt.Errorf("--max-memory is %d bytes: less than %d MiB is too little to work with", m, maxMemoryMin>>20)
	default:
		return m, nil
	}
}
