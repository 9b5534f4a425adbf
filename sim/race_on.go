//go:build race

package sim

import (
	"runtime"
	"unsafe"
)

// Passing the token from task to task synchronises them, which would hide every race from the detector: so it is done
// with the detector looking away, and the simulated locks tell it what they, and only they, synchronise.

func raceDisable()                    { runtime.RaceDisable() }
func raceEnable()                     { runtime.RaceEnable() }
func raceAcquire(addr unsafe.Pointer) { runtime.RaceAcquire(addr) }
func raceRelease(addr unsafe.Pointer) { runtime.RaceReleaseMerge(addr) }
