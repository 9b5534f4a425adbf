package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes, as 16k, 1g or 300 on the command line.
type size int64

var suffixes = map[byte]int64{'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}

func (s *size) UnmarshalText(text []byte) error {
	t := strings.ToLower(string(text))
	unit := int64(1)
	if n := len(t) - 1; n >= 0 && suffixes[t[n]] > 0 {
		unit, t = suffixes[t[n]], t[:n]
	}
	v, err := strconv.ParseInt(t, 10, 64)
	if err != nil || v <= 0 || v > math.MaxInt64/unit {
		return fmt.Errorf("%q is no size: 300, 16k, 64m and 1g are", text)
	}
	*s = size(v * unit)
	return nil
}
