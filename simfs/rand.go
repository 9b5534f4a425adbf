package simfs

import "sync"

// Rand is splitmix64: small, and the same for ever.
type Rand struct {
	mu    sync.Mutex
	state uint64
}

// NewRand makes a source of random bits that depends on seed alone. It is safe for concurrent use.
func NewRand(seed uint64) *Rand { return &Rand{state: seed} }

func (r *Rand) Uint64() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next()
}

func (r *Rand) next() uint64 {
	r.state += 0x9E3779B97F4A7C15
	return mix(r.state)
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// chance is a number in [0, 1) that depends on seed and place alone, so that no order of iteration matters.
func chance(seed uint64, ino int, at int64) float64 {
	x := mix(mix(seed+0x9E3779B97F4A7C15) ^ mix(uint64(ino)*0xD1342543DE82EF95) ^ mix(uint64(at)*0xAF251AF3B0F025B5+1))
	return float64(x>>11) / (1 << 53)
}
