package env

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"
)

// Guard runs f and turns a fault inside a live mapping, in the calling goroutine, into an error that wraps [ErrFault].
// Every other panic passes, a fault outside of all mappings and a nil dereference included.
func Guard(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		r := recover()
		if r == nil {
			return
		}
		fault, ok := r.(interface {
			runtime.Error
			Addr() uintptr
		})
		if !ok || !mappings.contain(fault.Addr()) {
			panic(r)
		}
		err = fmt.Errorf("%w: address %#x", ErrFault, fault.Addr())
	}()
	return f()
}

// MapRegion tells [Guard] of a range of addresses whose faults are errors; forget ends that. It is for the file systems of
// simulations, whose mappings are their own.
func MapRegion(base unsafe.Pointer, size uintptr) (forget func()) {
	mappings.add(base, size)
	return func() { mappings.remove(base) }
}

// mappings knows the address range of every live mapping.
var mappings = &regions{size: map[uintptr]uintptr{}}

type regions struct {
	mu   sync.Mutex
	size map[uintptr]uintptr // by base
}

func (r *regions) add(base unsafe.Pointer, size uintptr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size[uintptr(base)] = size
}

func (r *regions) remove(base unsafe.Pointer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.size, uintptr(base))
}

func (r *regions) contain(addr uintptr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for base, size := range r.size {
		if base <= addr && addr < base+size {
			return true
		}
	}
	return false
}
