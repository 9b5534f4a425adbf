//go:build !race

package sim

import "unsafe"

func raceDisable()               {}
func raceEnable()                {}
func raceAcquire(unsafe.Pointer) {}
func raceRelease(unsafe.Pointer) {}
